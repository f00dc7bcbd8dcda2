import { setTimeout as wait } from "node:timers/promises";
import { eq } from "drizzle-orm";
import { z } from "zod";
import { createApplication } from "../../../src/admin/application/create.ts";
import { lastTicks } from "../../../src/admin/deploy/first-tick.ts";
import { plainHomeSubmitter } from "../../../src/admin/script-command/submit.ts";
import { newRandomId } from "../../../src/shared/identifiers.ts";
import { scriptCommand } from "../../../src/shared/schema.ts";
import { type AllocatorCommand, scriptResult } from "../../../src/shared/script-commands.ts";
import type { Service } from "./two-releases.ts";

/** After which a call counts as hanging: the service responds within ten seconds. */
const TIMEOUT_MILLISECONDS = 20_000;
/** Until a command of the script must be carried out, and a webhook must have come. */
const PATIENCE_MILLISECONDS = 15_000;

const body = z.looseObject({
  error: z.string().optional(),
  badgeId: z.string().optional(),
  id: z.string().optional(),
  state: z.string().optional(),
});

interface Outcome {
  call: string;
  result: string;
  isFailure: boolean;
}

type Prepared = Awaited<ReturnType<typeof prepare>>;

/** Calls of one service for one application. */
class Caller {
  readonly #origin: string;
  readonly #headers: Record<string, string>;

  constructor({ origin }: Service, { applicationId, applicationSecret }: Application) {
    this.#origin = origin;
    this.#headers = { applicationid: applicationId, applicationsecret: applicationSecret };
  }

  send = async (method: string, path: string, udid: string, sent?: object) => {
    const response = await fetch(`${this.#origin}${path}`, {
      method,
      headers: { ...this.#headers, udid, "content-type": "application/json" },
      ...(sent && { body: JSON.stringify(sent) }),
      signal: AbortSignal.timeout(TIMEOUT_MILLISECONDS),
    });
    const text = await response.text();
    return { status: response.status, ...body.parse(text.startsWith("{") ? JSON.parse(text) : {}) };
  };

  logIn = (name: string, invitationToken?: string) =>
    this.send("POST", "/v1/badge", name, { userId: name, ...(invitationToken && { invitationToken }) });

  invite = () => this.send("POST", "/v1/invitation", "server", { expiresAt: new Date(Date.now() + 3_600_000) });

  step = (number: string, step: string) => this.send("PATCH", `/v1/badges/${number}/${step}`, "server");
}

type Application = Awaited<ReturnType<typeof create>>;

const create = ({ homes, tick, receiver }: Service) =>
  createApplication(homes, plainHomeSubmitter({ homes, wake: async () => void (await tick()) }), {
    name: "Releases",
    webhookUrl: receiver.url("releases"),
    statusList: true,
  });

/** An application with badges and invitations for the calls of each phase. */
export async function prepare(service: Service, phases: number) {
  const application = await create(service);
  const caller = new Caller(service, application);
  const badge = async (name: string): Promise<string> => {
    const { status, badgeId } = await caller.logIn(name);
    if (badgeId === undefined) throw new Error(`a new badge got ${status}`);
    return badgeId;
  };
  const token = async (): Promise<string> => (await caller.invite()).id ?? "";
  const parts = [];
  for (let phase = 0; phase < phases; phase++) {
    const of = (name: string) => badge(`${name} ${phase}`);
    const part = {
      ...{ active: await of("active"), suspend: await of("suspend"), resume: await of("resume") },
      ...{ revoke: await of("revoke"), script: await of("script") },
      ...{ blocked: await of("blocked"), erased: await of("erased") },
      tokens: { claimed: await token(), revoked: await token() },
    };
    await caller.step(part.resume, "suspend");
    parts.push(part);
  }
  /** What each badge's state has to be, after every call that was carried out. */
  const states = new Map<string, string>();
  for (const { tokens: _, ...numbers } of parts) {
    for (const [name, number] of Object.entries(numbers))
      states.set(number, name === "resume" ? "suspended" : "active");
  }
  return { application, parts, states };
}

/** The main calls of one phase, and what each has led to. */
export class CallsOfPhase {
  readonly #service: Service;
  readonly #prepared: Prepared;
  readonly #phase: number;
  readonly #caller: Caller;
  readonly #outcomes: Outcome[] = [];

  constructor(service: Service, prepared: Prepared, phase: number) {
    this.#service = service;
    this.#prepared = prepared;
    this.#phase = phase;
    this.#caller = new Caller(service, prepared.application);
  }

  async make(): Promise<Outcome[]> {
    const part = this.#prepared.parts[this.#phase];
    if (!part) throw new Error("nothing was prepared for this phase");
    const { logIn, invite, step, send } = this.#caller;
    const phase = this.#phase;
    const { applicationId } = this.#prepared.application;
    await this.#try("tick", () => this.#tick());
    await this.#call("new badge", 201, () => logIn(`new ${phase}`), "active");
    await this.#call("login", 200, () => logIn(`active ${phase}`));
    await this.#call("signature", 200, () => send("POST", "/v1/badge/sign", `active ${phase}`, { base64: "AAAA" }));
    await this.#call("invitation", 201, () => invite());
    await this.#call("claim", 201, () => logIn(`claimed ${phase}`, part.tokens.claimed), "active");
    const revoke = `/v1/invitation/${part.tokens.revoked}/revoke`;
    await this.#call("revoke an invitation", 200, () => send("PATCH", revoke, "server"));
    await this.#call("suspend", 200, () => step(part.suspend, "suspend"), "suspended", part.suspend);
    await this.#call("resume", 200, () => step(part.resume, "resume"), "active", part.resume);
    await this.#call("revoke", 200, () => step(part.revoke, "revoke"), "revoked", part.revoke);
    const user = (name: string, call: string) => send("PATCH", `/v1/users/${name}%20${phase}/${call}`, "server");
    await this.#call("block a user", 200, () => user("blocked", "block"), "revoked", part.blocked);
    await this.#call("erase a user", 200, () => user("erased", "erase"), "revoked", part.erased);
    const lists = ["badges?per_page=5", "changes", "history", "stats", "live?have=0", "doors"];
    for (const path of [...lists, `applications/${applicationId}/status/0`]) {
      await this.#call(`GET /v1/${path.replace(applicationId, "ID")}`, 200, () => send("GET", `/v1/${path}`, "server"));
    }
    await this.#try("script: badge revoke", () => this.#revokeByScript(part.script));
    await this.#try("script: reconcile --verify", () => this.#verify());
    await this.#try("new application", async () => (await create(this.#service)).applicationId && "done");
    await this.#try("webhooks of new badges", () => this.#awaitWebhooks());
    await this.#try("no write was lost", () => this.#checkStates());
    return this.#outcomes;
  }

  /**
   * Makes a call, which is carried out, or refused with 503: then nothing has changed.
   *
   * @param state what the badge's state is to be afterwards
   * @param number of the badge; if not given, the one that the response names
   */
  #call(call: string, accepted: number, make: () => ReturnType<Caller["send"]>, state?: string, number?: string) {
    return this.#try(call, async () => {
      const { status, error, badgeId } = await make();
      const changed = number ?? badgeId;
      if (status === accepted && state !== undefined && changed !== undefined) {
        this.#prepared.states.set(changed, state);
      }
      if (status === accepted) return String(status);
      if (status === 503 && error === "UNAVAILABLE") return "503 UNAVAILABLE";
      throw new Error(`${status} ${error}`);
    });
  }

  async #tick(): Promise<string> {
    const { homes, tick } = this.#service;
    const before = await lastTicks(homes);
    await tick();
    const after = await lastTicks(homes);
    if (after.some((tickedAt, index) => tickedAt === before[index])) throw new Error("a home did not tick");
    return "done";
  }

  async #try(call: string, work: () => Promise<string>): Promise<void> {
    try {
      this.#outcomes.push({ call, result: await work(), isFailure: false });
    } catch (error) {
      this.#outcomes.push({ call, result: error instanceof Error ? error.message : "failed", isFailure: true });
    }
  }

  async #revokeByScript(number: string): Promise<string> {
    const { kind } = await this.#submit({ kind: "revoke", number: Number(number) });
    if (kind !== "badge") throw new Error(kind);
    this.#prepared.states.set(number, "revoked");
    return "done";
  }

  async #verify(): Promise<string> {
    const result = await this.#submit({ kind: "reconcile", verify: true, republish: false, skip: 0 });
    if (result.kind !== "reconciled" || result.differences?.count !== 0) throw new Error(JSON.stringify(result));
    return "same rows";
  }

  /** As the script does it, with the tick as its wake-up. */
  async #submit(command: AllocatorCommand) {
    const { homes, tick } = this.#service;
    const id = newRandomId();
    const request = JSON.stringify({ command, actor: { kind: "administrator", name: "releases" } });
    const row = { id, recipient: this.#prepared.application.applicationId, command: request, createdAt: Date.now() };
    await homes.first.database.run((orm) => orm.insert(scriptCommand).values(row));
    for (let waited = 0; waited < PATIENCE_MILLISECONDS; waited += 500) {
      await tick();
      const find = eq(scriptCommand.id, id);
      const [found] = await homes.first.database.run((orm) => orm.select().from(scriptCommand).where(find));
      if (found?.result != null) return scriptResult.parse(JSON.parse(found.result));
      await wait(500);
    }
    throw new Error("not carried out");
  }

  async #awaitWebhooks(): Promise<string> {
    const arrivals = this.#service.receiver.arrivals("releases");
    const missing = () => [...this.#prepared.states.keys()].filter((number) => !arrivals.has(number));
    for (let waited = 0; missing().length > 0 && waited < PATIENCE_MILLISECONDS; waited += 500) {
      if (waited > PATIENCE_MILLISECONDS / 2) await this.#service.tick();
      await wait(500);
    }
    if (missing().length > 0) throw new Error(`none of ${missing().join(", ")}`);
    return "all came";
  }

  async #checkStates(): Promise<string> {
    for (const [number, expected] of this.#prepared.states) {
      const { state } = await this.#caller.send("GET", `/v1/badges/${number}`, "server");
      if (state !== expected) throw new Error(`badge ${number} is ${state}, and should be ${expected}`);
    }
    return "none";
  }
}
