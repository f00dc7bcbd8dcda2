import { DRIVE_PATH, type Drive } from "../drive.ts";
import { type Bindings, memoised } from "./memoised.ts";

type Fetch<Env> = (request: Request, env: Env, execution: ExecutionContext) => Promise<Response> | Response;

/**
 * A Worker that calls another one in its own isolate, so that nothing of the runtime's is between the calls: no
 * connection, no D1, no object. Every other request goes to that Worker as it comes, with the real bindings.
 */
export function driverOf<Env extends Bindings>(fetch: Fetch<Env>): { fetch: Fetch<Env> } {
  // Made once an isolate, as the platform's own bindings are: statements are kept by them.
  let bindings: Env | undefined;
  return {
    async fetch(request, env, execution) {
      const { pathname, origin } = new URL(request.url);
      if (pathname !== DRIVE_PATH) return fetch(request, env, execution);
      bindings ??= memoised(env);
      // Making a log line is the Worker's work; writing it is the platform's.
      console.log = () => {};
      return run(await request.json(), origin, (each) => fetch(each, bindings ?? env, execution));
    },
  };
}

/** @returns the last response; all before it had its status and its length */
async function run(
  { call: { path, ...call }, times }: Drive,
  origin: string,
  fetch: (request: Request) => Promise<Response> | Response,
): Promise<Response> {
  let first: { status: number; bytes: number } | undefined;
  let last = new ArrayBuffer(0);
  for (let count = 0; count < times; count++) {
    const response = await fetch(new Request(origin + path, call));
    last = await response.arrayBuffer();
    first ??= { status: response.status, bytes: last.byteLength };
    if (response.status !== first.status || last.byteLength !== first.bytes) {
      throw new Error(`call ${count} was answered ${response.status}, the first one ${first.status}`);
    }
  }
  return Response.json({ status: first?.status ?? 0, body: new TextDecoder().decode(last) });
}
