import { randomUUID } from "node:crypto";
import type * as z from "zod";
import type { UploadedModule, uploadMetadata } from "./runtime.ts";

/** What an upload has made a Worker of. */
export interface Code {
  metadata: z.output<typeof uploadMetadata> | null;
  modules: ReadonlyMap<string, UploadedModule>;
  assets: ReadonlyMap<string, Uint8Array>;
}

interface Version extends Code {
  id: string;
  createdOn: string;
  /** As they were when it was made. */
  secrets: ReadonlyMap<string, string>;
}

export interface Share {
  version_id: string;
  percentage: number;
}

interface Deployment {
  id: string;
  created_on: string;
  versions: Share[];
}

/**
 * A Worker's versions, and which of them have traffic. Requests are not divided: the version with the largest share gets all of
 * them, and runs all objects. `npm run releases` shows two releases that call each other.
 */
export class Versions {
  /** Newest first, like `#deployments`. */
  readonly #versions: Version[] = [];
  readonly #deployments: Deployment[] = [];

  /** @returns the new version's ID */
  add(code: Code, secrets: ReadonlyMap<string, string>): string {
    const version = { ...code, id: randomUUID(), createdOn: this.#now(), secrets: new Map(secrets) };
    this.#versions.unshift(version);
    return version.id;
  }

  /** @returns the deployment's ID; undefined if there is no such version */
  deploy(versions: Share[]): string | undefined {
    if (versions.some(({ version_id: id }) => this.find(id) === undefined)) return undefined;
    const deployment = { id: randomUUID(), created_on: this.#now(), versions };
    this.#deployments.unshift(deployment);
    return deployment.id;
  }

  /** Later than any time before it: wrangler sorts by it. */
  #now(): string {
    const latest = Math.max(0, ...this.#versions.map(({ createdOn }) => Date.parse(createdOn)));
    const deployed = Date.parse(this.#deployments[0]?.created_on ?? "1970-01-01");
    return new Date(Math.max(Date.now(), latest + 1, deployed + 1)).toISOString();
  }

  find(id: string): Version | undefined {
    return this.#versions.find((version) => version.id === id);
  }

  /** Undefined: nothing is deployed. */
  get serving(): Version | undefined {
    const shares = this.#deployments[0]?.versions ?? [];
    const [largest] = shares.toSorted((one, other) => other.percentage - one.percentage);
    return largest && this.find(largest.version_id);
  }

  get isGradual(): boolean {
    return (this.#deployments[0]?.versions.length ?? 0) > 1;
  }

  /** As the API returns them. */
  get deployments(): object[] {
    const rest = { source: "wrangler", strategy: "percentage", author_email: "somebody@example.com" };
    return this.#deployments.map((deployment) => ({ ...rest, ...deployment }));
  }

  get all(): object[] {
    return this.#versions.map(describe);
  }
}

/** As the API returns a version. */
export function describe({ id, createdOn }: Pick<Version, "id" | "createdOn">): object {
  return {
    id,
    number: 1,
    metadata: { created_on: createdOn, source: "wrangler", author_email: "somebody@example.com", has_preview: false },
    annotations: {},
    resources: { script: { etag: id, handlers: [] }, script_runtime: {}, bindings: [] },
    startup_time_ms: 1,
  };
}
