import { z } from "zod";
import { homeOf } from "../../../../src/shared/homes.ts";
import { INITIAL_HEAD } from "../../../../src/shared/initial-head.ts";
import { applicationHead } from "../../../../src/shared/schema.ts";
import type { AllocatorCommand } from "../../../../src/shared/script-commands.ts";
import { orm } from "../../../../src/worker/storage/statement.ts";
import { digestOf, rootKeyOf } from "../invariants/history.ts";
import { CLOSED } from "../invariants/replica.ts";
import { Member } from "../member.ts";
import { type ApplicationPlan, HOUR } from "../plan.ts";
import type { Statement } from "../platform/d1.ts";
import { signingPair } from "../platform/globals.ts";
import { insertInto, type Value } from "../platform/sqlite.ts";
import type { Credentials } from "../service/door.ts";

const values = z.array(z.union([z.string(), z.number()]));
const MAX_GROWTH = 4;

/** Makes applications and changes them while they are in use, in the transactions of the administration script. */
export class Administrator extends Member {
  readonly #dice = this.world.dice.of("administrator");
  #keys = 0;
  #secrets = 0;
  #commands = 0;
  /** An object that loses its storage while D1's rows are replaced has lost them. */
  readonly #mayRepublish = this.world.plan.restorations === 0 || !this.world.plan.forgetful;
  readonly #asked: { id: string; command: AllocatorCommand }[] = [];

  create(application: ApplicationPlan): void {
    const { id, firstNumber, numbersAtFirst, webhookUrl, events, reuseAfterSeconds, verifiesUsers } = application;
    const { now } = this.world.timeline;
    const row = insertInto("application", {
      ...{ id, name: "Simulated", sealed_root_key: rootKeyOf(id), sealing_version: 1, created_at: now },
      ...{ first_number: firstNumber, last_number: firstNumber + numbersAtFirst - 1 },
      ...{ reuse_after_seconds: reuseAfterSeconds, webhook_url: webhookUrl, events: events.join() },
      require_proof: this.#dice.chance(0.1),
      bind_until: this.#dice.chance(0.3) ? now + 4 * HOUR : null,
      ...(verifiesUsers && { user_issuer: "https://login.example.com", user_audience: "app" }),
    });
    const { sql, params } = orm
      .insert(applicationHead)
      .values({ applicationId: id, ...INITIAL_HEAD })
      .toSQL();
    this.#write(application, "makes an application", row, { sql, parameters: values.parse(params) });
    this.#addKey(application);
    this.#addSecret(application, "current");
    // Some are in the middle of a rotation when the seed begins.
    for (let steps = this.#dice.below(3); steps > 0; steps--) this.#rotateSecret(application);
  }

  /** Of the application's server, with the current secret. */
  credentialsOf({ id }: ApplicationPlan): Credentials {
    const sql = "SELECT sealed FROM application_secret WHERE application_id = ? AND role = 'current'";
    return { applicationId: id, secret: String(this.world.d1.look(sql, id)[0]?.sealed) };
  }

  /** The end of its range, which grows, and may be shorter again after a restoration. */
  lastNumberOf({ id }: ApplicationPlan): number {
    return Number(this.world.d1.look("SELECT last_number FROM application WHERE id = ?", id)[0]?.last_number);
  }

  async act(application: ApplicationPlan): Promise<void> {
    const { timeline, plan } = this.world;
    const soon = timeline.now + this.#dice.below(4 * plan.thinkMilliseconds);
    const ends = [null, timeline.now - 1, soon, timeline.now + 4 * HOUR] as const;
    const acts = [
      () => this.#addKey(application),
      () => this.#rotateSecret(application),
      () => this.setUrl(application),
      () => this.#growRange(application),
      () => this.set(application, "require_proof", this.#dice.chance(0.4)),
      () => this.set(application, "bind_until", this.#dice.oneOf(ends)),
      () => this.command(application),
      () => this.#commandAtOnce(application),
    ] as const;
    this.#dice.oneOf(acts)();
  }

  /** Sets the URL anew, as it is: what was held is sent again. */
  setUrl(application: ApplicationPlan): void {
    const sql = "UPDATE application SET webhook_held_at = NULL WHERE id = ? AND webhook_url IS NOT NULL";
    this.#write(application, "sets the webhook URL", { sql, parameters: [application.id] });
  }

  set(application: ApplicationPlan, column: "last_number" | "require_proof" | "bind_until", value: Value): void {
    const sql = `UPDATE application SET ${column} = ? WHERE id = ?`;
    this.#write(application, `sets ${column} to ${value}`, { sql, parameters: [value, application.id] });
  }

  /** Several commands, of which the script tells the object, perhaps more than once. */
  #commandAtOnce(application: ApplicationPlan): void {
    for (let count = this.#dice.between(1, 3); count > 0; count--) this.command(application);
    for (let times = this.#dice.below(3); times > 0; times--) this.wake(application);
  }

  wake({ id }: ApplicationPlan): void {
    const { isolates } = this.world;
    void isolates.enter((contextOf) => contextOf(homeOf(id)).allocator.wake(id, false)).catch(() => {});
  }

  /** A command of the script, which the application's object carries out (contract section 21). */
  command(application: ApplicationPlan): void {
    const { book, timeline } = this.world;
    const number = this.#dice.pick(book.numbersOf(application.id)) ?? application.firstNumber;
    const userId = this.#dice.oneOf(["alice", "bob", "carol"] as const);
    const command = this.#dice.oneOf<AllocatorCommand>([
      { kind: "suspend", number },
      { kind: "resume", number },
      { kind: "revoke", number },
      { kind: "reschedule", number, expiresAt: this.#dice.oneOf([null, timeline.now + HOUR]) },
      { kind: "block", userId },
      { kind: "unblock", userId },
      { kind: "unblock", userId },
      { kind: "erase", userId },
      { kind: "reconcile", verify: true, republish: false, skip: 0 },
      { kind: "reconcile", verify: true, republish: this.#mayRepublish, skip: 0 },
    ]);
    this.#ask(application, command);
  }

  /** `reconcile ID --republish` (contract section 21). */
  republish(application: ApplicationPlan): void {
    this.#ask(application, { kind: "reconcile", verify: true, republish: true, skip: 0 });
  }

  /** What was interrupted is asked for again. @returns whether a republication is not done yet */
  goOnRepublishing(application: ApplicationPlan): boolean {
    if (!this.#hasAskedToRepublish(application.id)) return false;
    // A late batch of it may still close the application.
    if (this.isRepublishing(application.id)) return true;
    if (this.world.d1.headOf(application.id)?.readable_from !== CLOSED) return false;
    this.republish(application);
    return true;
  }

  /** Whether a republication may be under way, or is to be repeated. The next tick carries out what is open, for an hour. */
  isRepublishing(id: string): boolean {
    const { d1, timeline } = this.world;
    const waiting = "SELECT id FROM script_command WHERE recipient = ? AND result IS NULL AND created_at > ?";
    return this.#hasAskedToRepublish(id) && d1.look(waiting, id, timeline.now - HOUR).length > 0;
  }

  #hasAskedToRepublish(of: string): boolean {
    return this.#asked.some(({ id, command }) => id === of && command.kind === "reconcile" && command.republish);
  }

  #ask({ id }: ApplicationPlan, command: AllocatorCommand): void {
    this.#asked.push({ id, command });
    const name = this.#dice.oneOf(["ada", "alice"] as const);
    const request = JSON.stringify({ command, actor: { kind: "administrator", name } });
    const created = { created_at: this.world.timeline.now };
    const row = { id: `command ${++this.#commands}`, recipient: id, command: request, ...created };
    this.world.trace.add("administrator", `asks for ${JSON.stringify(command)}`);
    this.world.d1.of(id).execute([insertInto("script_command", row)]);
  }

  get erasures(): number {
    return this.#asked.filter(({ command }) => command.kind === "erase").length;
  }

  /** Whether a block of a user was ever to be lifted. */
  hasUnblocked({ applicationId, userId }: { applicationId: string; userId: string }): boolean {
    return this.#asked.some(
      ({ id, command }) => id === applicationId && command.kind === "unblock" && command.userId === userId,
    );
  }

  #growRange(application: ApplicationPlan): void {
    this.set(application, "last_number", this.lastNumberOf(application) + this.#dice.between(2, MAX_GROWTH));
  }

  #addKey(application: ApplicationPlan): void {
    const place = this.#keys++;
    const key = { id: place + 1, kid: `key-${place}`, public_key: signingPair(place).publicKey, sealed: String(place) };
    this.#insert(application, "adds a signing key", "signing_key", { ...key, sealing_version: 1 });
  }

  /** The next of three steps: add, promote, retire. */
  #rotateSecret(application: ApplicationPlan): void {
    const { id } = application;
    const secrets = this.world.d1.look("SELECT role FROM application_secret WHERE application_id = ?", id);
    const has = (role: string) => secrets.some((secret) => secret.role === role);
    if (has("added")) {
      const sql = "UPDATE application_secret SET role = ? WHERE application_id = ? AND role = ?";
      const move = (from: string, to: string) => ({ sql, parameters: [to, id, from] });
      this.#write(application, "promotes the added secret", move("current", "previous"), move("added", "current"));
    } else if (has("previous")) {
      const sql = "DELETE FROM application_secret WHERE application_id = ? AND role = 'previous'";
      this.#write(application, "retires the previous secret", { sql, parameters: [id] });
    } else {
      this.#addSecret(application, "added");
    }
  }

  #addSecret(application: ApplicationPlan, role: "current" | "added"): void {
    const place = this.#secrets++;
    const secret = `bdss_simulated-${place}`;
    const row = { id: `sec_${place}`, role, digest: digestOf(secret), sealed: secret, sealing_version: 1 };
    this.#insert(application, `adds the ${role} secret`, "application_secret", row);
  }

  #insert(application: ApplicationPlan, what: string, table: string, row: Record<string, Value>): void {
    const about = { application_id: application.id, created_at: this.world.timeline.now };
    this.#write(application, what, insertInto(table, { ...about, ...row }));
  }

  #write({ id }: ApplicationPlan, what: string, ...statements: Statement[]): void {
    this.world.trace.add("administrator", what);
    this.world.d1.of(id).execute(statements);
  }
}
