import * as z from "zod";
import { type ApplicationId, applicationId } from "../../shared/identifiers.ts";
import { UNUSED_REGISTRATION_HOURS } from "../../shared/limits/platform-limits.ts";
import type { HomeCommand, HomeResult, Registration } from "../../shared/script-commands.ts";
import { HOUR_MILLISECONDS } from "../../shared/time.ts";
import { log } from "../log.ts";
import { findOwner, lowestFreeBlock } from "./free-range.ts";

/** The storage of home 1's scheduler, as the register uses it. */
interface RegisterStorage {
  exec(query: string, ...values: (string | number)[]): { toArray(): object[] };
}

/** D1's copy of the register. Every call may throw Unavailable. */
export interface RegisterCopy {
  list(): Promise<Registration[]>;
  put(registrations: readonly Registration[]): Promise<void>;
  delete(id: ApplicationId): Promise<void>;
}

const row = z
  .object({
    application_id: applicationId,
    first_number: z.number(),
    last_number: z.number(),
    registered_at: z.number(),
  })
  .transform(
    (each): Registration => ({
      applicationId: each.application_id,
      firstNumber: each.first_number,
      lastNumber: each.last_number,
      registeredAt: each.registered_at,
    }),
  );

const rangeOf = ({ firstNumber: first, lastNumber: last }: Registration) => ({ first, last });

/**
 * The register of number ranges, which home 1's scheduler keeps in its own storage, so that it survives a restore of D1.
 * It alone assigns ranges, in one local transaction. D1 has a copy for an object that lost its storage. An application
 * gets its numbers only after they are registered here.
 */
export class NumberRegister {
  readonly #sql: RegisterStorage;
  readonly #now: () => number;

  /** @param now milliseconds */
  constructor(sql: RegisterStorage, now: () => number) {
    this.#sql = sql;
    this.#now = now;
    sql.exec(`CREATE TABLE IF NOT EXISTS registration (application_id TEXT PRIMARY KEY, first_number INTEGER NOT NULL,
      last_number INTEGER NOT NULL, registered_at INTEGER NOT NULL) WITHOUT ROWID`);
    sql.exec("CREATE TABLE IF NOT EXISTS register_copied (id INTEGER PRIMARY KEY CHECK (id = 1))");
  }

  /**
   * Compares the register with D1's copy. D1 gets the registrations that a restore has removed or changed. The register
   * adopts registrations that only D1 has, unless they overlap its own; all of them, if the object is new or lost its storage.
   *
   * @throws Unavailable
   */
  async compare(d1: RegisterCopy): Promise<void> {
    const missing = this.#adopt(await d1.list());
    if (missing.length === 0) return;
    await d1.put(missing);
    log("warn", { event: "registrations-restored", registrations: missing.length });
  }

  /**
   * Carries out a command of the script. A repeated command has the same result.
   *
   * @throws Unavailable when D1 lacks the change; the next comparison adds it
   */
  async execute(d1: RegisterCopy, command: HomeCommand): Promise<HomeResult> {
    return command.kind === "register" ? this.#register(d1, command) : this.#release(d1, command.applicationId);
  }

  async #register(d1: RegisterCopy, command: Extract<HomeCommand, { kind: "register" }>): Promise<HomeResult> {
    const result = this.#decide(command);
    if (result.kind === "registered") await d1.put([result.registration]);
    return result;
  }

  /** Synchronous, so that no other command runs in between. */
  #decide({ applicationId: id, range }: Extract<HomeCommand, { kind: "register" }>): HomeResult {
    const all = this.#list();
    const own = all.find((each) => each.applicationId === id);
    const others = all.filter((each) => each !== own);
    const wanted = range ?? (own ? rangeOf(own) : lowestFreeBlock(others));
    if (!wanted) return { kind: "taken", owner: null };
    // A range grows only at its end.
    if (own && own.firstNumber !== wanted.first) return { kind: "taken", owner: own };
    const last = Math.max(wanted.last, own?.lastNumber ?? wanted.last);
    const owner = findOwner(others, { first: wanted.first, last });
    if (owner) return { kind: "taken", owner };
    const registration = { applicationId: id, firstNumber: wanted.first, lastNumber: last, registeredAt: this.#now() };
    this.#put(registration);
    return { kind: "registered", registration };
  }

  async #release(d1: RegisterCopy, id: ApplicationId): Promise<HomeResult> {
    const own = this.#list().find((each) => each.applicationId === id);
    const usedUntil = (own?.registeredAt ?? 0) + UNUSED_REGISTRATION_HOURS * HOUR_MILLISECONDS;
    if (own && this.#now() < usedUntil) return { kind: "kept", registration: own };
    // D1 first: a comparison would otherwise copy the registration back from D1.
    await d1.delete(id);
    this.#sql.exec("DELETE FROM registration WHERE application_id = ?", id);
    return { kind: "released", registration: own ?? null };
  }

  /** @returns the registrations that D1 lacks, or that differ in D1 */
  #adopt(inD1: readonly Registration[]): Registration[] {
    if (this.#sql.exec("SELECT id FROM register_copied").toArray().length === 0) {
      for (const each of inD1) this.#put(each);
      this.#sql.exec("INSERT INTO register_copied VALUES (1)");
      log("info", { event: "register-copied", registrations: inD1.length });
      return [];
    }
    const known = new Map(this.#list().map((each) => [each.applicationId, each]));
    for (const each of inD1) {
      if (known.has(each.applicationId) || findOwner([...known.values()], rangeOf(each))) continue;
      this.#put(each);
      known.set(each.applicationId, each);
    }
    const copied = new Map(inD1.map((each) => [each.applicationId, each]));
    return [...known.values()].filter((each) => !isSame(each, copied.get(each.applicationId)));
  }

  #list(): Registration[] {
    return z.array(row).parse(this.#sql.exec("SELECT * FROM registration").toArray());
  }

  #put({ applicationId: id, firstNumber, lastNumber, registeredAt }: Registration): void {
    const values = [id, firstNumber, lastNumber, registeredAt];
    this.#sql.exec("INSERT OR REPLACE INTO registration VALUES (?, ?, ?, ?)", ...values);
  }
}

const isSame = (one: Registration, other: Registration | undefined): boolean =>
  other?.firstNumber === one.firstNumber && other.lastNumber === one.lastNumber;
