delete from proverq.timing where step = 11;
delete from proverq.step where step = 11;

delete from proverq.schema_migration where version = 4;
