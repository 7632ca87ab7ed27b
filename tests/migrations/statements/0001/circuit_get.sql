-- Everything about the circuit version $1 that a prover needs.
select c.name, c.version, c.curve, c.n_vars, c.n_public, c.log_domain,
       z.sha256 as zkey, z.bytes as zkey_bytes, z.path as zkey_path,
       r.sha256 as r1cs, r.bytes as r1cs_bytes, r.path as r1cs_path,
       c.vkey::text as vkey, c.insecure
from proverq.circuit c
join proverq_private.artefact z on z.sha256 = c.zkey
left join proverq_private.artefact r on r.sha256 = c.r1cs
where c.circuit_id = $1::bigint
