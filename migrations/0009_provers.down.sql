-- Takes the reasons away. Views that need them are dropped before.
drop trigger if exists prover_ended on proverq.prover;
drop function if exists proverq.prover_ended();
drop function if exists proverq.renew_leases(int, bigint[], bigint[], uuid[], int);
drop function if exists proverq.finalizable(int), proverq.finalize(bigint);
drop function if exists proverq.circuit_refused(int, bigint, text, text);
drop function if exists proverq.device_quarantined(text, text, int, text);
drop function if exists proverq.why_refused(bigint);
drop function if exists proverq.why_quarantined();
drop table proverq.circuit_refusal;
drop table proverq.device_quarantine;
delete from proverq.schema_migration where version = 9;
