/* Points in the JSON of snarkjs: projective decimal strings, ["x","y","1"] in G1 and
 * [["x0","x1"],["y0","y1"],["1","0"]] in G2; infinity is ["0","1","0"] and [["0","0"],["1","0"],
 * ["0","0"]]. */
#ifndef PROVERQ_POINT_JSON_H
#define PROVERQ_POINT_JSON_H

#include "gpu/curve.h"
#include "gpu/error.h"

#include <jansson.h>

/* New references; NULL only when out of memory. */
json_t *json_from_number(const uint8_t *le, size_t n);
json_t *json_from_g1(const struct curve_info *curve, const struct g1_point *p);
json_t *json_from_g2(const struct curve_info *curve, const struct g2_point *p);

/* ERR_UNSUPPORTED, beginning with `what`, when the object names a protocol other than groth16. As
 * in snarkjs it may name none. */
MUST_USE enum err json_protocol(const json_t *json, const char *what, struct error *error);

/* Read JSON of json_load_exact. The third coordinate may be left out, else it is 1, or 0 for
 * infinity. ERR_INPUT, beginning with `what`: another shape, a coordinate >= q. Whether the point
 * is on the curve is not checked. */
MUST_USE enum err g1_from_json(const struct curve_info *curve, const json_t *json, const char *what,
                               struct g1_point *out, struct error *error);
MUST_USE enum err g2_from_json(const struct curve_info *curve, const json_t *json, const char *what,
                               struct g2_point *out, struct error *error);

#endif
