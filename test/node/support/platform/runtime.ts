import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { convertV4MiniflareOptions, Log, LogLevel, Miniflare, type Request, Response } from "miniflare";
import * as z from "zod";

/** A Worker as it was uploaded: the `metadata` of the upload (developers.cloudflare.com/workers/configuration/multipart-upload-metadata). */
export const uploadMetadata = z.looseObject({
  main_module: z.string(),
  compatibility_date: z.string(),
  compatibility_flags: z.array(z.string()).default([]),
  limits: z.looseObject({ cpu_ms: z.number().optional() }).optional(),
  bindings: z.array(
    z.looseObject({
      name: z.string(),
      type: z.string(),
      id: z.string().optional(),
      queue_name: z.string().optional(),
      class_name: z.string().optional(),
      text: z.string().optional(),
      namespace_id: z.string().optional(),
    }),
  ),
});

export interface UploadedModule {
  type: "ESModule" | "Text";
  text: string;
}

export interface RunningWorker {
  name: string;
  metadata: z.output<typeof uploadMetadata>;
  modules: ReadonlyMap<string, UploadedModule>;
  secrets: ReadonlyMap<string, string>;
  /** Settings of the queues that it consumes. */
  consumers: Readonly<Record<string, { maxBatchSize: number; maxRetries: number; deadLetterQueue?: string }>>;
}

interface Statement {
  sql: string;
  params?: unknown[] | undefined;
}

/** The runtime in which databases are kept and the uploaded Worker runs. Everything survives a new upload. */
export class PlatformRuntime {
  readonly #folder: string;
  readonly #onFetch: (request: Request) => Promise<Response>;
  #miniflare: Miniflare | undefined;
  #isStale = true;
  /** Databases of the runtime that is running. */
  #bound: readonly string[] = [];
  #databases: readonly string[] = [];
  #queues: readonly string[] = [];
  #worker: RunningWorker | undefined;

  /** @param onFetch gets every request that the Worker sends to the internet */
  constructor(folder: string, onFetch: (request: Request) => Promise<Response>) {
    this.#folder = folder;
    this.#onFetch = onFetch;
  }

  /** Changes what runs, from the next use on. */
  set(databases: readonly string[], queues: readonly string[], worker: RunningWorker | undefined): void {
    this.#databases = databases;
    this.#queues = queues;
    this.#worker = worker;
    this.#isStale = true;
  }

  /** @throws Error with D1's message */
  async query(databaseId: string, batch: readonly Statement[]): Promise<unknown> {
    // A new Worker need not run before its first request.
    const running = this.#bound.includes(databaseId) ? this.#miniflare : undefined;
    const response = await this.#askInside({ binding: `D1_${databaseId}`, batch }, running);
    const body = await response.json();
    if (response.status === 200) return body;
    throw new Error(z.object({ error: z.string() }).parse(body).error);
  }

  /** Puts a message into a queue, as Queues' HTTP interface does. */
  async push(queue: string, message: unknown): Promise<void> {
    await this.#askInside({ binding: `QUEUE_${queue}`, message });
  }

  async #askInside(body: object, running?: Miniflare) {
    const worker = await (running ?? (await this.#running())).getWorker("d1-rest");
    return worker.fetch("http://d1-rest/", { method: "POST", body: JSON.stringify(body) });
  }

  /** A request to the deployed Worker. */
  async dispatch(request: { url: string; method: string; headers: Record<string, string>; body: Buffer | null }) {
    if (this.#worker === undefined) return new Response("no Worker", { status: 404 });
    const { url, ...init } = request;
    return (await this.#running()).dispatchFetch(url, init);
  }

  /** Deletes the storage of all objects; databases stay as they are. */
  async deleteObjects(): Promise<void> {
    await this.stop();
    rmSync(join(this.#folder, "state/do"), { recursive: true, force: true });
  }

  /** What the cron trigger calls. */
  async sweep(): Promise<void> {
    const worker = await (await this.#running()).getWorker();
    await worker.scheduled({ cron: "* * * * *" });
  }

  /** Until the next use. */
  async stop(): Promise<void> {
    await this.#miniflare?.dispose();
    this.#miniflare = undefined;
  }

  async #running(): Promise<Miniflare> {
    if (this.#miniflare !== undefined && !this.#isStale) return this.#miniflare;
    this.#isStale = false;
    this.#bound = this.#databases;
    const options = this.#options();
    if (this.#miniflare === undefined) this.#miniflare = new Miniflare(options);
    else await this.#miniflare.setOptions(options);
    await this.#miniflare.ready;
    return this.#miniflare;
  }

  #options() {
    const databases = Object.fromEntries(this.#databases.map((id) => [`D1_${id}`, id]));
    const queues = Object.fromEntries(this.#queues.map((name) => [`QUEUE_${name}`, { queueName: name }]));
    const rest = {
      name: "d1-rest",
      modules: true,
      scriptPath: fileURLToPath(new URL("../d1-rest.js", import.meta.url)),
      d1Databases: databases,
      queueProducers: queues,
    };
    return convertV4MiniflareOptions({
      workers: [...(this.#worker ? [this.#uploaded(this.#worker)] : []), rest],
      resourcePersistencePath: join(this.#folder, "state"),
      log: new Log(LogLevel.ERROR),
      logRequests: false,
      cf: false,
      telemetry: { enabled: false },
      // The Worker writes a line for each request.
      handleStructuredLogs: () => {},
    });
  }

  #uploaded({ name, metadata, modules, secrets, consumers }: RunningWorker) {
    const root = join(this.#folder, "upload");
    for (const [path, { text }] of modules) write(join(root, path), text);
    const of = (type: string) => metadata.bindings.filter((binding) => binding.type === type);
    // workerd refuses jurisdictions, which the platform has.
    const textOf = ({ name: variable, text = "" }: { name: string; text?: string | undefined }) =>
      /^HOME_\d+$/.test(variable) && text.startsWith("jurisdiction=") ? "" : text;
    const texts = of("plain_text").map((binding) => [binding.name, textOf(binding)] as const);
    return {
      name,
      rootPath: root,
      modules: [...modules]
        .toSorted(([one], [other]) => Number(other === metadata.main_module) - Number(one === metadata.main_module))
        .map(([path, { type }]) => ({ type, path: join(root, path) })),
      compatibilityDate: metadata.compatibility_date,
      compatibilityFlags: metadata.compatibility_flags,
      bindings: { ...Object.fromEntries(texts), ...Object.fromEntries(secrets) },
      d1Databases: Object.fromEntries(of("d1").map((each) => [each.name, each.id ?? ""])),
      durableObjects: Object.fromEntries(
        of("durable_object_namespace").map((each) => [
          each.name,
          { className: each.class_name ?? "", useSQLite: true },
        ]),
      ),
      queueProducers: Object.fromEntries(of("queue").map((each) => [each.name, { queueName: each.queue_name ?? "" }])),
      queueConsumers: Object.fromEntries(
        Object.entries(consumers).map(([queue, settings]) => [queue, { ...settings, maxBatchTimeout: 0 }]),
      ),
      ratelimits: Object.fromEntries(
        of("ratelimit").map((each) => [
          each.name,
          { namespace_id: each.namespace_id ?? each.name, simple: { limit: 1_000_000, period: 60 as const } },
        ]),
      ),
      outboundService: this.#onFetch,
    };
  }
}

function write(path: string, content: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
}
