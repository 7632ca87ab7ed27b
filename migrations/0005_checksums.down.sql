alter table proverq.schema_migration drop column checksum;

delete from proverq.schema_migration where version = 5;
