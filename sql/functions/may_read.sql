-- Who may do what. session_user is asked, not current_user: most functions run with their owner's rights.

create or replace function proverq_private.is_member(role name) returns bool
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select exists (select from pg_roles r where r.rolname = is_member.role and pg_has_role(session_user, r.oid, 'member'))
$$;
comment on function proverq_private.is_member(name) is
    'Whether the session''s user is, or is a member of, a role; false when there is no such role. Part of may_read() and may_change().';

create or replace function proverq_private.is_owner() returns bool
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select pg_has_role(session_user, n.nspowner, 'member') from pg_namespace n where n.nspname = 'proverq'
$$;
comment on function proverq_private.is_owner() is 'Whether the session''s user owns the schema. Part of may_read() and may_change().';

create or replace function proverq_private.may_read(submitter name) returns bool
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select proverq_private.is_member(submitter) or proverq_private.is_owner() or proverq_private.is_member('proverq_operator') or proverq_private.is_member('proverq_reader')
$$;
comment on function proverq_private.may_read(name) is 'Whether the session''s user may see what this role has submitted.';

create or replace function proverq_private.may_change(submitter name) returns bool
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select proverq_private.is_member(submitter) or proverq_private.is_owner() or proverq_private.is_member('proverq_operator')
$$;
comment on function proverq_private.may_change(name) is 'Whether the session''s user may cancel, retry and reorder what this role has submitted.';
