import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { buffer } from "node:stream/consumers";
import type { Request as SentRequest } from "miniflare";
import { Response as RuntimeResponse } from "miniflare";
import { listenSomewhere } from "../../../../src/dev/demo/listen.ts";
import { Refusal, StandInAccount } from "./account.ts";
import { PlatformRuntime } from "./runtime.ts";

/**
 * What happens to a call of the API: it is refused for want of a right or in other words, such as 429 (`LIMITED`), carried out
 * without a response, or neither.
 */
export type Fault = "refuse" | Refusal | "lose" | null;

export const LIMITED = new Refusal(429, 971, "Please wait and consider throttling your request speed", {
  "retry-after": "1",
});

const ACCOUNT_ID = "0123456789abcdef0123456789abcdef";

/**
 * A stand-in for the platform, as far as a deployment uses it: the REST API, which wrangler and the script reach by
 * `CLOUDFLARE_API_BASE_URL`, with real D1 behind it, and the deployed Worker, which runs as it was uploaded.
 *
 * The paths and responses are those that wrangler 4.135 uses, and those of developers.cloudflare.com/api; D1's `raw` takes a
 * batch there, too. One is a guess after the documentation: that queues return their `jurisdiction` (Queues: Data location
 * describes only how to set it). If they do not, a queue in the wrong jurisdiction is not noticed. Other guesses stand where they
 * are made.
 */
export class PlatformStandIn {
  readonly account: StandInAccount;
  /** Calls of the API, as `POST /queues`, with names and IDs left out. */
  readonly calls: string[] = [];
  /** Decides on each call. */
  fault: (call: string) => Fault = () => null;
  /** What the Worker sent to the internet. */
  readonly sent: { url: string; body: string }[] = [];
  readonly #runtime: PlatformRuntime;
  readonly #servers: Server[] = [];
  apiUrl = "";
  /** Where the deployed Worker is reached. */
  address = "";

  private constructor(folder: string) {
    this.#runtime = new PlatformRuntime(folder, (request) => this.#receive(request));
    this.account = new StandInAccount(this.#runtime, () =>
      this.#runtime.set(
        this.account.databases.map(({ uuid }) => uuid),
        this.account.queues.map(({ queue_name: name }) => name),
        this.account.running,
      ),
    );
  }

  static async start(folder: string): Promise<PlatformStandIn> {
    const standIn = new PlatformStandIn(folder);
    standIn.apiUrl = await standIn.#serve((request, response) => standIn.#answer(request, response));
    standIn.address = await standIn.#serve((request, response) => standIn.#forward(request, response));
    return standIn;
  }

  /** Variables of the environment with which wrangler and the script reach it. */
  get environment(): Record<string, string> {
    return {
      CLOUDFLARE_API_BASE_URL: this.apiUrl,
      CLOUDFLARE_API_TOKEN: "a-token",
      CLOUDFLARE_ACCOUNT_ID: ACCOUNT_ID,
    };
  }

  /** Runs a statement on the database of home 1. @returns the results as the API sends them */
  execute(sql: string): Promise<unknown> {
    const [{ uuid } = { uuid: "" }] = this.account.databases;
    return this.#runtime.query(uuid, [{ sql }]);
  }

  /** What the cron trigger does each minute. */
  sweep(): Promise<void> {
    return this.#runtime.sweep();
  }

  async stop(): Promise<void> {
    for (const server of this.#servers) server.close().closeAllConnections();
    await this.#runtime.stop();
  }

  async #serve(handle: (request: IncomingMessage, response: ServerResponse) => Promise<void>): Promise<string> {
    const server = createServer((request, response) => {
      handle(request, response).catch((error: unknown) => {
        process.stderr.write(`the stand-in failed: ${error instanceof Error ? error.stack : error}\n`);
        response.destroy();
      });
    });
    this.#servers.push(server);
    return listenSomewhere(server);
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? "/", this.apiUrl);
    const method = request.method ?? "GET";
    const body = await buffer(request);
    const path = pathname.replace(`/accounts/${ACCOUNT_ID}`, "");
    const call = `${method} ${path.replaceAll(/\/[0-9a-f-]{36}/g, "/ID").replace(/(scripts|services)\/[\w-]+/, "$1/NAME")}`;
    this.calls.push(call);
    const fault = this.fault(call);
    const reply = (status: number, result: unknown, errors: { code: number; message: string }[] = [], more = {}) => {
      response.writeHead(status, { "content-type": "application/json", ...more });
      response.end(JSON.stringify({ success: errors.length === 0, errors, messages: [], result }));
    };
    if (fault === "refuse") return reply(403, null, [{ code: 10_000, message: "Authentication error" }]);
    try {
      if (fault instanceof Refusal) throw fault;
      if (path === "/graphql") {
        const groups = this.account.state.activeMicroseconds.map((activeTime) => ({ sum: { activeTime } }));
        const data = { viewer: { accounts: [{ durableObjectsPeriodicGroups: groups }] } };
        response.writeHead(200, { "content-type": "application/json" });
        response.end(JSON.stringify({ data, errors: null }));
        return;
      }
      const contentType = request.headers["content-type"] ?? "";
      const result = await this.account.answer({ method, path, query: searchParams, body, contentType });
      if (fault === "lose") response.destroy();
      else reply(200, result);
    } catch (error) {
      if (!(error instanceof Refusal)) throw new Error(call, { cause: error });
      reply(error.status, null, [{ code: error.code, message: error.message }], error.headers);
    }
  }

  async #forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await buffer(request);
    const headers = Object.fromEntries(
      Object.entries(request.headers).flatMap(([name, value]) => (typeof value === "string" ? [[name, value]] : [])),
    );
    const answered = await this.#runtime.dispatch({
      url: `${this.address}${request.url}`,
      method: request.method ?? "GET",
      headers: { ...headers, "cf-connecting-ip": "192.0.2.1" },
      body: body.length === 0 ? null : body,
    });
    const content = Buffer.from(await answered.arrayBuffer());
    const given = [...answered.headers].filter(
      ([name]) => !/^(content-encoding|content-length|transfer-encoding)$/.test(name),
    );
    response.writeHead(answered.status, Object.fromEntries(given));
    response.end(content);
  }

  async #receive(request: SentRequest): Promise<RuntimeResponse> {
    this.sent.push({ url: request.url, body: await request.text() });
    return new RuntimeResponse(null, { status: 204 });
  }
}
