-- Each migration leaves its checksum, so that a file which was changed after it ran is noticed.
--
-- From here on the last line of a file carries the SHA-256 of all the lines above it (contrib/scripts/seal-migrations.sh
-- writes it), so that it is recorded whatever tool runs the file. The files before this one had none yet.

alter table proverq.schema_migration
    add column checksum text,
    add constraint schema_migration_checksum_valid check (checksum ~ '^[0-9a-f]{64}$');
comment on column proverq.schema_migration.checksum is 'SHA-256 of the lines of the file above the one that wrote this row: head -n -1 FILE | sha256sum.';

update proverq.schema_migration m set checksum = f.checksum
from (values (1, 'c82bcf49de250b2eae4431c772b29bea1d04f4580b14ba7ee7f52f80e59c8f9f'),
             (2, '2a3861f6b3b0e09879b7820e6a1e464031dc764e257bca65b6eb9a8600dd40d7'),
             (3, '16dd66d32c7aba7a83ae0a4870a2c2db6a8a56a36e7fb0eeda9cdcc81707657b'),
             (4, '434ce6142082360c558e7c279c903d3661c959e7b7a467114545f7e757df2f3f')) f (version, checksum)
where m.version = f.version;

insert into proverq.schema_migration (version, name, breaking, checksum) values (5, 'checksums', false, '8770bfc878810a9137dbd311b037258f9f80c50e62b0ac2089122b82dc8ba968');
