/* Which program this is: `proverq --version`, the prover table, the User-Agent of webhooks. */
#ifndef PROVERQ_VERSION_H
#define PROVERQ_VERSION_H

#define PROVERQ_VERSION "0.1.0"

#endif
