alter table proverq.job drop column note;

delete from proverq.schema_migration where version = 9002;
