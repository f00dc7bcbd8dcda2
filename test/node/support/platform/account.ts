import { randomUUID } from "node:crypto";
import * as z from "zod";
import { type PlatformRuntime, type RunningWorker, type UploadedModule, uploadMetadata } from "./runtime.ts";
import { type Code, describe, Versions } from "./versions.ts";

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
export interface Call {
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

/** With the code that serves. */
interface Script extends Code {
  versions: Versions;
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
const newDeployment = z.object({ versions: z.array(z.object({ version_id: z.string(), percentage: z.number() })) });
const newDomains = z.object({ origins: z.array(z.object({ hostname: z.string() })) });
const manifestSchema = z.object({ manifest: z.record(z.string(), z.object({ hash: z.string(), size: z.number() })) });

type Runtime = Pick<PlatformRuntime, "query" | "push" | "keepDatabases" | "restoreDatabases" | "deleteObjects">;

/** What the account may differ in from one that has everything. */
export interface AccountState {
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
  readonly #uploads = new Map<string, Uint8Array>();
  #manifest: z.output<typeof manifestSchema>["manifest"] = {};
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
      const consumed = this.queues.flatMap(({ queue_name: queue, consumers }) =>
        consumers
          .filter((consumer) => consumer.script === name)
          .map(({ settings, dead_letter_queue: dead }) => [
            queue,
            {
              maxBatchSize: settings.batch_size ?? 10,
              maxRetries: settings.max_retries ?? 3,
              ...(dead !== undefined && { deadLetterQueue: dead }),
            },
          ]),
      );
      return { name, metadata, ...script, consumers: Object.fromEntries(consumed) };
    }
    return undefined;
  }

  /** @throws Refusal */
  async answer({ method, path, query, body, contentType }: Call): Promise<unknown> {
    const json = (): unknown => JSON.parse(body.toString() || "{}");
    const [area = "", ...parts] = path.split("/").slice(1);
    const route = `${method} ${area}`;
    if (area === "d1") return this.#d1(method, parts.slice(1), query, json);
    if (area === "queues") {
      if (!this.state.hasQueues) throw new Refusal(403, 11002, "In order to use Queues, you must enable your account.");
      return this.#queue(method, parts, query, json);
    }
    if (area === "workers") return this.#worker(method, parts, query, body, contentType);
    if (route === "GET zones") return query.get("name") === "example.com" ? [{ id: "zone", name: "example.com" }] : [];
    throw new Refusal(404, 7003, `the stand-in does not know ${route}`);
  }

  /**
   * Bookmarks are of now: the platform also finds one of a past minute. All databases of the account go back together, so a rehearsal
   * has one.
   */
  async #timeTravel(method: string, query: URLSearchParams): Promise<unknown> {
    if (method === "GET") {
      const bookmark = `00000001-00000002-00004e2f-${randomUUID().replaceAll("-", "")}`;
      await this.#runtime.keepDatabases(bookmark);
      return { bookmark };
    }
    const bookmark = query.get("bookmark") ?? "";
    if (await this.#runtime.restoreDatabases(bookmark)) return { bookmark, previous_bookmark: bookmark, message: "ok" };
    throw new Refusal(400, 7500, "unknown bookmark");
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
    if (action === "time_travel") return this.#timeTravel(method, query);
    const { batch } = z.object({ batch: z.array(statement) }).parse(json());
    if (action !== "raw") throw new Refusal(404, 7003, `the stand-in does not know ${action}`);
    try {
      return await this.#runtime.query(id, batch);
    } catch (error) {
      throw new Refusal(400, 7500, error instanceof Error ? error.message : String(error));
    }
  }

  async #queue(
    method: string,
    [id, part, consumerId]: string[],
    query: URLSearchParams,
    json: () => unknown,
  ): Promise<unknown> {
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

  async #worker(
    method: string,
    [kind, name = "", what, detail]: string[],
    query: URLSearchParams,
    body: Buffer,
    contentType: string,
  ) {
    const json = (): unknown => JSON.parse(body.toString() || "{}");
    if (kind === "subdomain") return this.#subdomain(method, json);
    if (kind === "subdomains") throw name === "taken" ? nameTaken() : new Refusal(404, 10032, "It is not used.");
    if (kind === "domains") return this.domains;
    if (kind === "assets") return this.#takeAssets(body, contentType);
    if (kind === "services") return this.#service(name);
    if (kind !== "scripts") throw new Refusal(404, 7003, `the stand-in does not know workers/${kind}`);
    if (what === "assets-upload-session") return this.#openUpload(json());
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
      case "versions":
        if (method === "POST") return this.#addVersion(script, body, contentType);
        return detail === undefined ? { items: script.versions.all } : this.#version(script, detail);
      case "deployments":
        if (method === "POST") return this.#deploy(script, newDeployment.parse(json()), query.has("force"));
        return { deployments: script.versions.deployments };
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
    const script = this.scripts.get(name);
    if (script === undefined) throw new Refusal(404, 10090, "This service does not exist on your account.");
    const tag = script.metadata?.migrations?.new_tag;
    const deployed = { last_deployed_from: "wrangler", tags: [], ...(tag !== undefined && { migration_tag: tag }) };
    return { default_environment: { environment: "production", script: deployed } };
  }

  /** With its secrets and the storage of its objects; of the account's other Workers, too. */
  async deleteWorker(name: string): Promise<void> {
    this.scripts.delete(name);
    for (const queue of this.queues) queue.consumers = queue.consumers.filter(({ script }) => script !== name);
    this.#changed();
    await this.#runtime.deleteObjects();
  }

  #openUpload(json: unknown): unknown {
    this.#manifest = manifestSchema.parse(json).manifest;
    const missing = Object.values(this.#manifest).filter(({ hash }) => !this.#uploads.has(hash));
    return { jwt: TOKEN, buckets: missing.length === 0 ? [] : [missing.map(({ hash }) => hash)] };
  }

  async #takeAssets(body: Buffer, contentType: string): Promise<unknown> {
    for (const [hash, file] of await formOf(body, contentType)) {
      const text = typeof file === "string" ? file : await file.text();
      this.#uploads.set(hash, Buffer.from(text, "base64"));
    }
    return { jwt: TOKEN };
  }

  /** The code of an upload, and the secrets that come with it. */
  async #read(before: Script | undefined, body: Buffer, contentType: string) {
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
    metadata.bindings = metadata.bindings.map((binding) =>
      binding.type === "inherit"
        ? (before?.metadata?.bindings.find(({ name: bound }) => bound === binding.name) ?? binding)
        : binding,
    );
    for (const { queue_name: queue } of metadata.bindings) {
      if (queue !== undefined && !this.queues.some((each) => each.queue_name === queue)) {
        throw new Refusal(400, 100_127, `Queue "${queue}" does not exist.`);
      }
    }
    const secrets = before?.secrets ?? new Map<string, string>();
    for (const binding of metadata.bindings) {
      if (binding.type === "secret_text") secrets.set(binding.name, binding.text ?? "");
    }
    const assets = new Map(
      Object.entries(this.#manifest).map(([path, { hash }]) => [path, this.#uploads.get(hash) ?? new Uint8Array()]),
    );
    // A draft, which wrangler makes for the first secret, answers nothing.
    const isDraft = !metadata.bindings.some(({ type }) => type === "d1");
    const code: Code = { metadata: isDraft ? (before?.metadata ?? null) : metadata, modules, assets };
    return { code, secrets };
  }

  async #upload(name: string, body: Buffer, contentType: string): Promise<unknown> {
    const before = this.scripts.get(name);
    const { code, secrets } = await this.#read(before, body, contentType);
    const versions = before?.versions ?? new Versions();
    this.scripts.delete(name);
    const { schedules = [], isReachable = false } = before ?? {};
    const script: Script = { ...code, versions, secrets, schedules, isReachable };
    this.scripts.set(name, script);
    this.#serve(script, code);
    return {
      id: name,
      etag: randomUUID(),
      pipeline_hash: "x",
      mutable_pipeline_id: "x",
      deployment_id: randomUUID(),
      startup_time_ms: 1,
    };
  }

  /** A new version that has all traffic. */
  #serve(script: Script, { metadata, modules, assets }: Code = script): void {
    const code = { metadata, modules, assets };
    script.versions.deploy([{ version_id: script.versions.add(code, script.secrets), percentage: 100 }]);
    this.#changed();
  }

  /** A new version without traffic. */
  async #addVersion(script: Script, body: Buffer, contentType: string): Promise<unknown> {
    const { code } = await this.#read(script, body, contentType);
    return this.#version(script, script.versions.add(code, script.secrets));
  }

  #version(script: Script, id: string): unknown {
    const found = script.versions.find(id);
    if (found === undefined) throw new Refusal(404, 10_045, "This version does not exist.");
    return describe(found);
  }

  /**
   * Divides the traffic among versions. Whether a version that returns has the secrets of its time or of today is documented
   * nowhere: here they are those of today.
   */
  #deploy(script: Script, { versions }: z.output<typeof newDeployment>, isForced: boolean): unknown {
    const serving = script.versions.serving;
    const changed = versions.flatMap(({ version_id: id }) => {
      const before = script.versions.find(id)?.secrets ?? new Map<string, string>();
      return [...script.secrets.keys()].filter((name) => before.get(name) !== script.secrets.get(name));
    });
    if (changed.length > 0 && !isForced) {
      throw new Refusal(400, 10_220, `The following secrets have changed: ${[...new Set(changed)].join(", ")}`);
    }
    const id = script.versions.deploy(versions);
    if (id === undefined) throw new Refusal(404, 10_045, "This version does not exist.");
    const { metadata, modules, assets } = script.versions.serving ?? serving ?? script;
    Object.assign(script, { metadata, modules, assets });
    this.#changed();
    return { id };
  }

  #secret(script: Script, method: string, detail: string | undefined, json: () => unknown): unknown {
    if (method === "GET") return [...script.secrets.keys()].map((name) => ({ name, type: "secret_text" }));
    if (script.versions.isGradual) {
      throw new Refusal(400, 10_215, "The latest version of your Worker isn't currently deployed.");
    }
    if (method === "PUT") {
      const { name, text } = z.object({ name: z.string(), text: z.string() }).parse(json());
      script.secrets.set(name, text);
      this.#serve(script);
      return { name, type: "secret_text" };
    }
    script.secrets.delete(detail ?? "");
    this.#serve(script);
    return null;
  }
}

/** By the content type of its part, as the platform tells them apart: a file of SQL is text. */
const moduleTypeOf = ({ type }: Blob): UploadedModule["type"] => (type.startsWith("text/plain") ? "Text" : "ESModule");

/** wrangler reads only the middle part. */
const TOKEN = `e30.${Buffer.from("{}").toString("base64url")}.e30`;

const formOf = (body: Buffer, contentType: string): Promise<FormData> =>
  new Response(new Uint8Array(body), { headers: { "content-type": contentType } }).formData();
