-- Input signals: flattened exactly, or refused by name.
select test.is(proverq_private.inputs_text('{"a": 1}'), E'a 1\n', 'a number');
select test.is(proverq_private.inputs_text('{"a": "1"}'), E'a 1\n', 'a decimal string');
select test.is(proverq_private.inputs_text('{"a": [1, [2, [3, "4"]], [], [[5]]]}'),
    E'a 1 2 3 4 5\n', 'nested arrays are flattened in their order');
select test.is(proverq_private.inputs_text('{"b": 2, "a": [], "ccc": 3}'),
    E'a\nb 2\nccc 3\n', 'each signal is a line, an empty one too');
select test.is(proverq_private.inputs_text('{}'), '', 'no signals');
select test.is(proverq_private.inputs_text(null), null, 'no inputs');
select test.is(proverq_private.inputs_text('{"a": 9007199254740993}'), E'a 9007199254740993\n', 'a number above 2^53');
select test.is(
    proverq_private.inputs_text('{"a": 21888242871839275222246405745257275088548364400416034343698204186575808495616}'),
    E'a 21888242871839275222246405745257275088548364400416034343698204186575808495616\n', 'a number of 77 digits');
select test.is(proverq_private.inputs_text(format('{"a": %s, "b": "%1$s", "c": "-%1$s"}', repeat('9', 80))::jsonb),
               format(E'a %s\nb %1$s\nc -%1$s\n', repeat('9', 80)), '80 digits');
select test.is(proverq_private.inputs_text('{"a": [-1, "-1", 0, -0, "-0"]}'), E'a -1 -1 0 0 -0\n', 'negatives');
select test.is(proverq_private.inputs_text('{"a": ["0xff", "0XFF", "-0x10", "0x0"]}'),
    E'a 0xff 0XFF -0x10 0x0\n', 'hexadecimal strings');
select test.is(proverq_private.inputs_text(format('{"a": "0x%s"}', repeat('f', 80))::jsonb),
    format(E'a 0x%s\n', repeat('f', 80)), '80 hexadecimal digits');
select test.is(proverq_private.inputs_text('{"a": [1.0, 1e3, 1.5e1, 12.000]}'),
    E'a 1 1000 15 12\n', 'whole numbers, however they are written');
select test.is(proverq_private.inputs_text('{"a": 1e79}'),
    E'a 1' || repeat('0', 79) || E'\n', 'an exponent that leaves 80 digits');
select test.is(proverq_private.inputs_text('{"a": "007"}'), E'a 007\n', 'leading zeros');
select test.is(proverq_private.inputs_text('{"main_$0": 1, "bus.x[2]": 2}'),
    E'main_$0 1\nbus.x[2] 2\n', 'names of circom''s');
select test.is(length(proverq_private.inputs_text(
        jsonb_build_object('a', (select jsonb_agg(i) from generate_series(100000, 199999) i)))),
    700002, 'a hundred thousand values');
select test.is(proverq_private.inputs_text('{"a": [[1, 2], [3, 4]], "b": [[[5], [6]], [[7], [8]]]}'),
    E'a 1 2 3 4\nb 5 6 7 8\n', 'matrices');

select test.throws($$select proverq_private.inputs_text('{"ok": 1, "a": 1.5}')$$,
    '22023', '^signal "a": 1.5 is no integer of at most 80 digits', 'a fraction');
select test.throws($$select proverq_private.inputs_text('{"a": [1, [2, 0.1]]}')$$,
    '22023', '^signal "a", value 2: 0.1 is no integer', 'a fraction inside');
select test.throws($$select proverq_private.inputs_text('{"a": "1.0"}')$$,
    '22023', 'signal "a": "1.0" is no integer', 'a string with a point');
select test.throws($$select proverq_private.inputs_text('{"a": "1e3"}')$$,
    '22023', 'signal "a": "1e3" is no integer', 'a string with an exponent');
select test.throws($$select proverq_private.inputs_text('{"a": true}')$$,
    '22023', 'signal "a": true is no integer', 'a boolean');
select test.throws($$select proverq_private.inputs_text('{"a": [1, null]}')$$,
    '22023', 'signal "a", value 1: null is no integer', 'a null');
select test.throws($$select proverq_private.inputs_text('{"a": null}')$$,
    '22023', 'signal "a": null is no integer', 'a null alone');
select test.throws($$select proverq_private.inputs_text('{"a": {"x": 1}}')$$,
    '22023', 'signal "a": an object is no integer.*bus\.field', 'an object');
select test.throws($$select proverq_private.inputs_text('{"a": [{"x": [1]}]}')$$,
    '22023', 'signal "a", value 0: an object', 'an object inside');
select test.throws($$select proverq_private.inputs_text('{"a": ""}')$$,
    '22023', 'signal "a": "" is no integer', 'an empty string');
select test.throws($$select proverq_private.inputs_text('{"a": " 1"}')$$,
    '22023', 'signal "a": " 1" is no integer', 'a space');
select test.throws($$select proverq_private.inputs_text('{"a": "1\n2"}')$$, '22023', 'signal "a"', 'a line break');
select test.throws($$select proverq_private.inputs_text('{"a": "1 2"}')$$,
    '22023', 'signal "a"', 'two numbers in one string');
select test.throws($$select proverq_private.inputs_text('{"a": "0x"}')$$,
    '22023', 'signal "a": "0x" is no integer', '0x alone');
select test.throws($$select proverq_private.inputs_text('{"a": "0xfg"}')$$,
    '22023', 'signal "a": "0xfg" is no integer', 'a digit that is none');
select test.throws($$select proverq_private.inputs_text('{"a": "ff"}')$$,
    '22023', 'signal "a": "ff" is no integer', 'hexadecimal digits without 0x');
select test.throws($$select proverq_private.inputs_text('{"a": "--1"}')$$, '22023', 'signal "a"', 'two signs');
select test.throws($$select proverq_private.inputs_text('{"a": "+1"}')$$, '22023', 'signal "a"', 'a plus');
select test.throws($$select proverq_private.inputs_text('{"a": "NaN"}')$$, '22023', 'signal "a"', 'no number');
select test.throws($$select proverq_private.inputs_text('{"a": "١"}')$$,
    '22023', 'signal "a"', 'digits of other scripts');
select test.throws(format($$select proverq_private.inputs_text('{"a": %s}')$$, repeat('9', 81)),
    '22023', 'signal "a": 9+ is no integer', '81 digits');
select test.throws(format($$select proverq_private.inputs_text('{"a": "%s"}')$$, repeat('9', 81)),
    '22023', 'signal "a"', '81 digits in a string');
select test.throws(format($$select proverq_private.inputs_text('{"a": "0x%s"}')$$, repeat('f', 81)),
    '22023', 'signal "a"', '81 hexadecimal digits');
select test.throws($$select proverq_private.inputs_text('{"a": 1e80}')$$,
    '22023', 'signal "a"', 'an exponent that is too large');
select test.throws($$select proverq_private.inputs_text('{"a": 1e-1}')$$, '22023', 'signal "a"', 'a negative exponent');
select test.throws($$select proverq_private.inputs_text('[1]')$$,
    '22023', 'must be a JSON object, not array', 'an array of inputs');
select test.throws($$select proverq_private.inputs_text('1')$$,
    '22023', 'must be a JSON object, not number', 'a number for inputs');
select test.throws($$select proverq_private.inputs_text('{"a b": 1}')$$,
    '22023', '''a b'' is no name of a signal', 'a name with a space');
select test.throws($$select proverq_private.inputs_text('{"": 1}')$$, '22023', ''''' is no name', 'an empty name');
select test.throws($$select proverq_private.inputs_text('{"a\nb": 1}')$$,
    '22023', 'is no name', 'a name with a line break');

-- At the insert. Circuit 4 knows its signals, 5 only how many values, 6 nothing.
insert into proverq_private.artefact (sha256, kind, bytes, path) values (sha256('wasm'), 'wasm', 100, 'w');
select proverq_private.circuit_add('named', sha256('4'), 'bn128', 9, 1, 3, sha256('mul'), null, '{}', false, 'wasm',
           sha256('wasm'), 4, '{"a": 1, "path": 3}'),
       proverq_private.circuit_add('counted', sha256('5'), 'bn128', 9, 1, 3, sha256('mul'), null, '{}', false, 'wasm',
           sha256('wasm'), 4),
       proverq_private.circuit_add('open', sha256('6'), 'bn128', 9, 1, 3, sha256('mul'), null, '{}', false,
           'program') \g /dev/null
select test.is(
    proverq.enqueue('named', array['{"a": "0x1f", "path": [1, [2, 3]]}', '{"a": -1, "path": [1, 2, 3]}']::jsonb[], 7),
    '1', 'enqueue gives the job''s number');
select test.is(format('%s %s %s', state, priority, partitions), 'queued 7 2', 'the job is queued at once')
from proverq.job where job_seq = 1;
select test.is(string_agg(inputs, '|' order by partition_idx),
    E'a 0x1f\npath 1 2 3\n|a -1\npath 1 2 3\n', 'a claim gives the inputs as text')
from proverq_private.claim(1, '{4}', 60000, 4);
select test.is(inputs, '{"a": -1, "path": [1, 2, 3]}', 'the row keeps them as they came')
from proverq.partition where job_seq = 1 and partition_idx = 1;
select test.throws($$select proverq.enqueue('named', array['{"a": 1, "path": [1, 2, 3]}', '{"a": 1}']::jsonb[])$$,
    '22023', '^partition 1 of job \d+: signal "path" is missing \| The circuit takes: a \(1\), path \(3\)',
    'a missing signal');
select test.throws($$select proverq.enqueue('named', array['{"a": 1, "path": [1, 2]}']::jsonb[])$$,
    '22023', '^partition 0 of job \d+: signal "path" has 2 value\(s\); the circuit takes 3', 'a short one');
select test.throws($$select proverq.enqueue('named', array['{"a": [1, 2], "path": [1, 2, 3]}']::jsonb[])$$,
    '22023', 'signal "a" has 2 value\(s\); the circuit takes 1', 'a long one');
select test.throws($$select proverq.enqueue('named', array['{"a": 1, "path": [1, 2, 3], "b": 1}']::jsonb[])$$,
    '22023', 'signal "b" is no input of circuit named', 'an extra one');
select test.throws($$select proverq.enqueue('named', array['{"A": 1, "path": [1, 2, 3]}']::jsonb[])$$,
    '22023', 'signal "A" is no input of circuit named', 'a misspelt one');
select test.throws($$select proverq.enqueue('named', array['{"a": [], "path": [1, 2, 3]}']::jsonb[])$$,
    '22023', 'signal "a" has 0 value\(s\)', 'an empty one');
select test.throws($$select proverq.enqueue('named', array['{"a": 1.5, "path": [1, 2, 3]}']::jsonb[])$$,
    '22023', '^partition 0 of job \d+: signal "a": 1.5 is no integer', 'no integer');
select test.throws($$select proverq.enqueue('counted', array['{"x": [1, 2, 3]}']::jsonb[])$$,
    '22023', 'there are 3 input values; circuit counted takes 4 \| With --sym', 'too few values');
select test.throws($$select proverq.enqueue('counted', array['{"x": [1, 2, 3], "y": [4, 5]}']::jsonb[])$$,
    '22023', 'there are 5 input values', 'too many values');
select test.is(proverq.enqueue('counted', array['{"x": [1, 2, 3], "y": 4}']::jsonb[]) > 1,
    true, 'as many as the circuit takes');
select test.is(proverq.enqueue('open', array['{"x": 1}']::jsonb[]) > 1, true, 'any, where nothing is known');
select test.throws($$select proverq.enqueue('open', array['{"x": "y"}']::jsonb[])$$,
    '22023', 'signal "x": "y" is no integer', 'but integers');
select test.throws($$select proverq.enqueue('named', '{}')$$, '22023', 'at least one inputs', 'no inputs');
select test.throws($$select proverq.enqueue('named', array[null]::jsonb[])$$,
    '22004', 'inputs of partition 0 is NULL', 'inputs of NULL');
insert into proverq.job (circuit, partitions) values ('named', 1) returning job_seq \gset
select test.throws(
    format($$insert into proverq.partition (job_seq, partition_idx, inputs) values (%s, 0, '{"a": 1}')$$, :job_seq),
    '22023', 'signal "path" is missing', 'a plain INSERT of wrong inputs');
select test.throws(format(
        $$insert into proverq.partition (job_seq, partition_idx, inputs, witness) values (%s, 0, '{"a": 1}', '\x01')$$,
        :job_seq),
    '23514', 'exactly one of inputs, witness', 'inputs and a witness');
insert into proverq.partition (job_seq, partition_idx, inputs) values (:job_seq, 0, '{"a": 1, "path": [1, 2, 3]}');
select test.is(test.state(:job_seq), 'queued', 'a plain INSERT of right ones');
select test.is(proverq.enqueue_witness('named', array['\x01'::bytea]) > 1,
    true, 'a circuit with a calculator takes witnesses too');

-- request_id.
select test.is(proverq.enqueue('named', array['{"a": 1, "path": [1, 2, 3]}']::jsonb[], request_id => 'r')
        - proverq.enqueue('named', array['{"path": [1,2,3], "a": 1}']::jsonb[], request_id => 'r'),
    '0', 'the same inputs are the same request, however they are spaced');
select test.throws(
    $$select proverq.enqueue('named', array['{"a": 2, "path": [1, 2, 3]}']::jsonb[], request_id => 'r')$$,
    '23505', 'was used', 'other inputs are not');
select test.throws($$select proverq.enqueue_witness('named', array['\x01'::bytea], request_id => 'r')$$,
    '23505', 'was used', 'nor a witness');

-- A circuit's calculator is a part of it.
select test.throws($$update proverq.circuit set n_inputs = 5 where name = 'named'$$,
    '55000', 'cannot be changed', 'a version''s inputs cannot change');
select test.throws(
    $$insert into proverq.circuit (name, version, sha256, curve, n_vars, n_public, log_domain, zkey, vkey, calculator)
        values ('w', 1, sha256('w'), 'bn128', 9, 1, 3, sha256('mul'), '{}', 'wasm')$$,
    '23514', 'circuit_wasm_whole', 'wasm without its file');
