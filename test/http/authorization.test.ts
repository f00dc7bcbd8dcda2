/** Who may do what. One file to the test runner, because each file gets a Worker of its own. */
import "./authorization/credentials.ts";
import "./authorization/proofs.ts";
import "./authorization/roles.ts";
import "./authorization/server-calls.ts";
import "./authorization/tenants.ts";
import "./authorization/users.ts";
