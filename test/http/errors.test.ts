/**
 * What every request and every answer of the service has in common. One file to the test runner, because each file gets
 * a Worker of its own, and to start one takes longer than all of these tests.
 */
import "./errors/bodies.ts";
import "./errors/fields.ts";
import "./errors/headers.ts";
import "./errors/order.ts";
import "./errors/rate-limit.ts";
