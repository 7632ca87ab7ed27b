#include "service/db/circuit_row.h"

const struct db_statement circuit_get = {"circuit_get", "lt", CIRCUIT_COLUMNS(DB_COLUMN_TYPE)};
