-- Everything about the circuit version $1 that a prover on a machine $2 (uname -m) needs.
select c.name, c.version, c.curve, c.n_vars, c.n_public, c.log_domain,
       z.sha256 as zkey, z.bytes as zkey_bytes, z.path as zkey_path,
       r.sha256 as r1cs, r.bytes as r1cs_bytes, r.path as r1cs_path,
       c.vkey::text as vkey, c.insecure,
       c.calculator, a.sha256 as compiled, a.bytes as compiled_bytes, a.path as compiled_path,
       d.sha256 as dat, d.bytes as dat_bytes, d.path as dat_path, c.n_inputs, c.input_signals::text as input_signals
from proverq.circuit c
join proverq_private.artefact z on z.sha256 = c.zkey
left join proverq_private.artefact r on r.sha256 = c.r1cs
left join proverq_private.calculator m on m.circuit_id = c.circuit_id and m.machine = $2::text
left join proverq_private.artefact a on a.sha256 = m.sha256
left join proverq_private.artefact d on d.sha256 = m.dat
where c.circuit_id = $1::bigint
