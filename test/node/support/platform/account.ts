import { randomUUID } from "node:crypto";
import * as z from "zod";
import { type PlatformRuntime, type RunningWorker, type UploadedModule, uploadMetadata } from "./runtime.ts";

/** A refusal of the platform, with its own code. */
export class Refusal extends Error {
  readonly status: number;
  readonly code: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, code: number, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.headers = headers;
  }
}

/** Another account has this workers.dev name. */
const nameTaken = () => new Refusal(409, 10031, "This subdomain is not available.");

/** A call of the API, below `/accounts/ID`. */
interface Call {
  method: string;
  path: string;
  query: URLSearchParams;
  body: Buffer;
  contentType: string;
}

interface Database {
  uuid: string;
  name: string;
  jurisdiction: string | null;
  /** `primary_location_hint`; the platform does not give it back. */
  hint: string | null;
  read_replication: { mode: "auto" | "disabled" };
}

interface Consumer {
  consumer_id: string;
  script: string;
  type: string;
  dead_letter_queue?: string | undefined;
  settings: { batch_size?: number | undefined; max_retries?: number | undefined };
}

interface Queue {
  queue_id: string;
  queue_name: string;
  jurisdiction: string | null;
  consumers: Consumer[];
}

/** What an upload has made a Worker of. */
interface Code {
  metadata: z.output<typeof uploadMetadata> | null;
  modules: ReadonlyMap<string, UploadedModule>;
}

/** With the code that serves. */
interface Script extends Code {
  versionId: string;
  /** Whether a second version shares the traffic, as `wrangler versions deploy` makes it do. */
  isGradual: boolean;
  secrets: Map<string, string>;
  schedules: { cron: string }[];
  isReachable: boolean;
}

const newDatabase = z.strictObject({
  name: z.string(),
  primary_location_hint: z.string().optional(),
  jurisdiction: z.string().optional(),
});
const newQueue = z.looseObject({ queue_name: z.string(), jurisdiction: z.string().optional() });
const statement = z.object({ sql: z.string(), params: z.array(z.unknown()).optional() });
const newConsumer = z.looseObject({
  script_name: z.string(),
  dead_letter_queue: z.string().optional(),
  settings: z.looseObject({ batch_size: z.number().optional(), max_retries: z.number().optional() }).default({}),
});
const newMessage = z.strictObject({ body: z.unknown(), content_type: z.enum(["json", "text"]).optional() });
const newReplication = z.strictObject({ read_replication: z.strictObject({ mode: z.enum(["auto", "disabled"]) }) });
const newDomains = z.object({ origins: z.array(z.object({ hostname: z.string() })) });
type Runtime = Pick<PlatformRuntime, "query" | "push" | "deleteObjects">;

/** What the account may differ in from one that has everything. */
interface AccountState {
  /** Free refuses `limits.cpu_ms` with code 100328. That nothing else tells the plan is a guess: there may be a better sign. */
  plan: "free" | "paid";
  /** Null: nobody has chosen one yet. Its absence is 10007 to `GET` (wrangler's source). */
  workersDevName: string | null;
  /** False: every call for queues is 11002 until somebody has opened them in the dashboard. The status is a guess. */
  hasQueues: boolean;
  /** Microseconds that each object was active within the last hour, as the analytics have it. Empty: none yet. */
  activeMicroseconds: number[];
}

/**
 * An account on the platform: what its API makes, and what wrangler and the script ask for.
 *
 * Rights are checked before the thing is looked for: a guess. If the platform does it the other way round, a token that may only
 * read is noticed by the first call that writes instead of by the check before it.
 */
export class StandInAccount {
  readonly state: AccountState = {
    plan: "paid",
    workersDevName: "rehearsal",
    hasQueues: true,
    activeMicroseconds: [],
  };
  readonly databases: Database[] = [];
  readonly queues: Queue[] = [];
  readonly scripts = new Map<string, Script>();
  /** Domains of their own that lead to a Worker. */
  readonly domains: { hostname: string; service: string }[] = [];
  readonly #runtime: Runtime;
  readonly #changed: () => void;

  /** @param changed is called when another set of databases or queues, or another Worker, is to run */
  constructor(runtime: Runtime, changed: () => void) {
    this.#runtime = runtime;
    this.#changed = changed;
  }

  /** The Worker that answers requests: of several, such as production and staging, the one that was uploaded last. */
  get running(): RunningWorker | undefined {
    for (const [name, { metadata, ...script }] of [...this.scripts].toReversed()) {
      if (metadata === null) continue;
      const consumed = this.queues.flatMap(({ queue_name: queue, consumers: [consumer] }) => {
        if (consumer?.script !== name) return [];
        const { settings, dead_letter_queue: dead } = consumer;
        const limits = { maxBatchSize: settings.batch_size ?? 10, maxRetries: settings.max_retries ?? 3 };
        return [[queue, { ...limits, ...(dead !== undefined && { deadLetterQueue: dead }) }] as const];
      });
      return { name, metadata, ...script, consumers: Object.fromEntries(consumed) };
    }
    return undefined;
  }

  /** @throws Refusal */
  async answer({ method, path, query, body, contentType }: Call): Promise<unknown> {
    const json = (): unknown => JSON.parse(body.toString() || "{}");
    const [area = "", ...parts] = path.split("/").slice(1);
    if (area === "d1") return this.#d1(method, parts.slice(1), query, json);
    if (area === "queues") {
      if (!this.state.hasQueues) throw new Refusal(403, 11002, "In order to use Queues, you must enable your account.");
      return this.#queue(method, parts, query, json);
    }
    if (area === "workers") return this.#worker(method, parts, body, contentType);
    throw new Refusal(404, 7003, `the stand-in does not know ${area}`);
  }

  async #d1(method: string, [id, action]: string[], query: URLSearchParams, json: () => unknown): Promise<unknown> {
    if (id === undefined && method === "GET") {
      return this.databases.filter(({ name }) => name.includes(query.get("name") ?? ""));
    }
    if (id === undefined) {
      const { name, primary_location_hint: hint = null, jurisdiction = null } = newDatabase.parse(json());
      if (this.databases.some((each) => each.name === name)) throw new Refusal(400, 7502, "database already exists");
      const made: Database = { uuid: randomUUID(), name, jurisdiction, hint, read_replication: { mode: "disabled" } };
      this.databases.push(made);
      this.#changed();
      return made;
    }
    const found = this.databases.find(({ uuid }) => uuid === id);
    if (found === undefined) throw new Refusal(404, 7404, "The database could not be found");
    if (action === undefined && method === "PUT") {
      found.read_replication = newReplication.parse(json()).read_replication;
      return found;
    }
    if (action === undefined && method === "GET") return found;
    if (action === "time_travel") return { bookmark: "00000001-00000002-00004e2f-00000000000000000000000000000000" };
    const { batch } = z.object({ batch: z.array(statement) }).parse(json());
    if (action !== "raw") throw new Refusal(404, 7003, `the stand-in does not know ${action}`);
    try {
      return await this.#runtime.query(id, batch);
    } catch (error) {
      throw new Refusal(400, 7500, error instanceof Error ? error.message : String(error));
    }
  }

  async #queue(method: string, [id, part, consumerId]: string[], query: URLSearchParams, json: () => unknown) {
    if (id === undefined && method === "GET") {
      // wrangler asks for several at once.
      const wanted = query.getAll("name");
      return this.queues.filter(({ queue_name: name }) => wanted.length === 0 || wanted.includes(name));
    }
    if (id === undefined) {
      const { queue_name: name, jurisdiction = null } = newQueue.parse(json());
      if (this.queues.some((queue) => queue.queue_name === name)) {
        throw new Refusal(409, 11009, `Queue name '${name}' is already taken.`);
      }
      const made: Queue = { queue_id: randomUUID(), queue_name: name, jurisdiction, consumers: [] };
      this.queues.push(made);
      this.#changed();
      return made;
    }
    const found = this.queues.find(({ queue_id: queueId }) => queueId === id);
    if (found === undefined) throw new Refusal(404, 11000, "Queue does not exist.");
    if (part === "messages") {
      await this.#runtime.push(found.queue_name, newMessage.parse(json()).body);
      return null;
    }
    const { script_name: script, dead_letter_queue, settings } = newConsumer.parse(json());
    const [existing] = found.consumers;
    if (method === "POST" && existing !== undefined) throw new Refusal(409, 11004, "Queue already has a consumer.");
    if (method === "PUT" && existing?.consumer_id !== consumerId) throw new Refusal(404, 11006, "No such consumer.");
    const consumer: Consumer = {
      consumer_id: existing?.consumer_id ?? randomUUID().replaceAll("-", ""),
      ...{ script, type: "worker", dead_letter_queue, settings },
    };
    found.consumers = [consumer];
    this.#changed();
    return { ...consumer, queue_name: found.queue_name };
  }

  async #worker(method: string, [kind, name = "", what, detail]: string[], body: Buffer, contentType: string) {
    const json = (): unknown => JSON.parse(body.toString() || "{}");
    if (kind === "subdomain") return this.#subdomain(method, json);
    if (kind === "subdomains") throw name === "taken" ? nameTaken() : new Refusal(404, 10032, "It is not used.");
    if (kind === "domains") return this.domains;
    if (kind === "services") return this.#service(name);
    if (kind !== "scripts") throw new Refusal(404, 7003, `the stand-in does not know workers/${kind}`);
    // The runtime has no assets, so none is missing.
    if (what === "assets-upload-session") return { jwt: TOKEN, buckets: [] };
    if (what === undefined && method === "PUT") return this.#upload(name, body, contentType);
    const script = this.scripts.get(name);
    if (script === undefined) {
      throw new Refusal(404, 10007, "This Worker does not exist on your account.");
    }
    switch (what) {
      case "secrets":
        return this.#secret(script, method, detail, json);
      case "settings": {
        const secrets = [...script.secrets.keys()].map((key) => ({ name: key, type: "secret_text" }));
        return { ...script.metadata, bindings: [...(script.metadata?.bindings ?? []), ...secrets] };
      }
      case "schedules":
        if (method === "PUT") script.schedules = z.array(z.object({ cron: z.string() })).parse(json());
        return { schedules: script.schedules };
      case "subdomain":
        if (method === "POST") script.isReachable = z.object({ enabled: z.boolean() }).parse(json()).enabled;
        return { enabled: script.isReachable, previews_enabled: false };
      case "domains":
        if (detail === "changeset") return { added: [], removed: [], updated: [], conflicting: [] };
        for (const { hostname } of newDomains.parse(json()).origins) this.domains.push({ hostname, service: name });
        return this.domains;
      case "deployments":
        return { deployments: [deploymentOf(script)] };
      case "script-settings":
        return {};
      default:
        throw new Refusal(404, 7003, `the stand-in does not know scripts/${what}`);
    }
  }

  #subdomain(method: string, json: () => unknown): unknown {
    if (method === "PUT") {
      const { subdomain } = z.strictObject({ subdomain: z.string() }).parse(json());
      if (subdomain === "taken") throw nameTaken();
      this.state.workersDevName = subdomain;
    }
    if (this.state.workersDevName === null) {
      throw new Refusal(404, 10007, "You have not registered a workers.dev subdomain yet.");
    }
    return { subdomain: this.state.workersDevName };
  }

  #service(name: string): unknown {
    if (!this.scripts.has(name)) throw new Refusal(404, 10090, "This service does not exist on your account.");
    return { default_environment: { environment: "production", script: { last_deployed_from: "wrangler", tags: [] } } };
  }

  /** With its secrets and the storage of its objects; of the account's other Workers, too. */
  async deleteWorker(name: string): Promise<void> {
    this.scripts.delete(name);
    for (const queue of this.queues) queue.consumers = queue.consumers.filter(({ script }) => script !== name);
    this.#changed();
    await this.#runtime.deleteObjects();
  }

  /** The code of an upload. */
  async #read(before: Script | undefined, body: Buffer, contentType: string): Promise<Code> {
    const form = await formOf(body, contentType);
    const modules = new Map<string, UploadedModule>();
    for (const [key, file] of form) {
      if (key !== "metadata" && typeof file !== "string" && !file.name.endsWith(".map")) {
        modules.set(file.name, { type: moduleTypeOf(file), text: await file.text() });
      }
    }
    const metadata = uploadMetadata.parse(JSON.parse(String(form.get("metadata"))));
    if (this.state.plan === "free" && metadata.limits?.cpu_ms !== undefined) {
      throw new Refusal(400, 100_328, "CPU limits are not supported for the Free plan. Switch to a paid plan.");
    }
    metadata.bindings = metadata.bindings.map((binding) => {
      const former = before?.metadata?.bindings.find(({ name: bound }) => bound === binding.name);
      return binding.type === "inherit" && former !== undefined ? former : binding;
    });
    for (const { queue_name: queue } of metadata.bindings) {
      if (queue !== undefined && !this.queues.some((each) => each.queue_name === queue)) {
        throw new Refusal(400, 100_127, `Queue "${queue}" does not exist.`);
      }
    }
    // A draft answers nothing.
    const isDraft = !metadata.bindings.some(({ type }) => type === "d1");
    return { metadata: isDraft ? null : metadata, modules };
  }

  async #upload(name: string, body: Buffer, contentType: string): Promise<unknown> {
    const before = this.scripts.get(name);
    const code = await this.#read(before, body, contentType);
    this.scripts.delete(name);
    const { secrets = new Map(), schedules = [], isReachable = false } = before ?? {};
    this.scripts.set(name, { ...code, versionId: randomUUID(), isGradual: false, secrets, schedules, isReachable });
    this.#changed();
    return { id: name, etag: randomUUID(), deployment_id: randomUUID(), startup_time_ms: 1 };
  }

  #secret(script: Script, method: string, detail: string | undefined, json: () => unknown): unknown {
    if (method === "GET") return [...script.secrets.keys()].map((name) => ({ name, type: "secret_text" }));
    if (script.isGradual) {
      throw new Refusal(400, 10_215, "The latest version of your Worker isn't currently deployed.");
    }
    if (method === "PUT") {
      const { name, text } = z.object({ name: z.string(), text: z.string() }).parse(json());
      script.secrets.set(name, text);
    } else script.secrets.delete(detail ?? "");
    script.versionId = randomUUID();
    this.#changed();
    return null;
  }
}

/** By the content type of its part, as the platform tells them apart: a file of SQL is text. */
const moduleTypeOf = ({ type }: Blob): UploadedModule["type"] => (type.startsWith("text/plain") ? "Text" : "ESModule");

function deploymentOf({ versionId, isGradual }: Script): object {
  const second = { version_id: randomUUID(), percentage: 10 };
  const versions = [{ version_id: versionId, percentage: isGradual ? 90 : 100 }, ...(isGradual ? [second] : [])];
  return { id: randomUUID(), strategy: "percentage", versions };
}

/** wrangler reads only the middle part. */
const TOKEN = `e30.${Buffer.from("{}").toString("base64url")}.e30`;

const formOf = (body: Buffer, contentType: string): Promise<FormData> =>
  new Response(new Uint8Array(body), { headers: { "content-type": contentType } }).formData();
