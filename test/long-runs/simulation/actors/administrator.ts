import { FIRST_POSITION } from "../../../../src/shared/first-position.ts";
import type { InboxCommand } from "../../../../src/shared/inbox.ts";
import { position } from "../../../../src/shared/schema.ts";
import { columnName } from "../../../../src/worker/storage/columns.ts";
import { deviceKeyOf, digestOf } from "../invariants/history.ts";
import { Member } from "../member.ts";
import { type ApplicationPlan, HOUR } from "../plan.ts";
import { signingPair } from "../platform/globals.ts";
import type { Value } from "../platform/sqlite.ts";
import type { Credentials } from "../service/door.ts";

/** A statement with its parameters. */
type Bound = readonly [sql: string, ...parameters: Value[]];

const FIRST_COLUMNS = Object.fromEntries(
  Object.entries(FIRST_POSITION).map(([name, value]) => [columnName(position, name), value ?? null]),
);

/** Numbers by which a range grows, at most. */
const MAX_GROWTH = 4;

/** Makes applications and changes them while they are in use, in the transactions of the administration script. */
export class Administrator extends Member {
  readonly #dice = this.world.dice.of("administrator");
  #keys = 0;
  #secrets = 0;
  #commands = 0;

  create(application: ApplicationPlan): void {
    const { id, firstNumber, numbersAtFirst, webhookUrl, events, reuseAfterSeconds, verifiesUsers } = application;
    const { now } = this.world.timeline;
    const sql = `INSERT INTO application (id, name, first_number, last_number, reuse_after_seconds, sealed_device_key,
      sealing_version, webhook_url, events, require_proof, bind_until, created_at, user_issuer, user_audience)
      VALUES (?, 'Simulated', ?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?)`;
    const requireProof = this.#dice.chance(0.1);
    const bindUntil = this.#dice.chance(0.3) ? now + 4 * HOUR : null;
    const numbers = [firstNumber, firstNumber + numbersAtFirst - 1, reuseAfterSeconds];
    const users = verifiesUsers ? ["https://login.example.com", "app"] : [null, null];
    const settings = [deviceKeyOf(id), webhookUrl, events.join(), requireProof, bindUntil, now, ...users];
    const position = `INSERT INTO position (application_id, ${Object.keys(FIRST_COLUMNS).join(", ")})
      VALUES (?, ${Object.keys(FIRST_COLUMNS)
        .map(() => "?")
        .join(", ")})`;
    const first = [position, id, ...Object.values(FIRST_COLUMNS)] as const;
    this.#write(application, "makes an application", [sql, id, ...numbers, ...settings], first);
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
      () => this.#command(application),
      () => this.#command(application),
    ] as const;
    this.#dice.oneOf(acts)();
  }

  /** Sets the URL anew, as it is: what was held is sent again. */
  setUrl(application: ApplicationPlan): void {
    const sql = `UPDATE application SET webhook_held_at = NULL, webhook_failing_since = NULL, webhook_failures = 0
      WHERE id = ? AND webhook_url IS NOT NULL`;
    this.#write(application, "sets the webhook URL", [sql, application.id]);
  }

  set(application: ApplicationPlan, column: "last_number" | "require_proof" | "bind_until", value: Value): void {
    const sql = `UPDATE application SET ${column} = ? WHERE id = ?`;
    this.#write(application, `sets ${column} to ${value}`, [sql, value, application.id]);
  }

  /** A command of the script, which the application's object carries out (contract section 21). */
  #command(application: ApplicationPlan): void {
    const { book, timeline } = this.world;
    const number = this.#dice.pick(book.numbersOf(application.id)) ?? application.firstNumber;
    const userId = this.#dice.oneOf(["alice", "bob", "carol"] as const);
    const command = this.#dice.oneOf<InboxCommand>([
      { kind: "suspend", number },
      { kind: "resume", number },
      { kind: "revoke", number },
      { kind: "reschedule", number, expiresAt: this.#dice.oneOf([null, timeline.now + HOUR]) },
      { kind: "block", userId },
      { kind: "unblock", userId },
      { kind: "unblock", userId },
      { kind: "reconcile", acceptLoss: false, skip: 0 },
    ]);
    const sql = "INSERT INTO inbox (id, application_id, command, created_at) VALUES (?, ?, ?, ?)";
    const request = JSON.stringify({ command, actor: { kind: "administrator", name: "ada" } });
    const row = [`command ${++this.#commands}`, application.id, request, timeline.now];
    this.#write(application, `asks for ${JSON.stringify(command)}`, [sql, ...row]);
  }

  #growRange(application: ApplicationPlan): void {
    this.set(application, "last_number", this.lastNumberOf(application) + this.#dice.between(2, MAX_GROWTH));
  }

  #addKey(application: ApplicationPlan): void {
    const place = this.#keys++;
    const { publicKey } = signingPair(place);
    const sql = `INSERT INTO signing_key (id, application_id, kid, public_key, sealed, sealing_version, created_at)
      VALUES (?, ?, ?, ?, ?, 1, ?)`;
    const key = [`key-${place}`, publicKey, String(place), this.world.timeline.now];
    this.#write(application, "adds a signing key", [sql, place + 1, application.id, ...key]);
  }

  /** The next of three steps: add, promote, retire. */
  #rotateSecret(application: ApplicationPlan): void {
    const { id } = application;
    const secrets = this.world.d1.look("SELECT role FROM application_secret WHERE application_id = ?", id);
    const has = (role: string) => secrets.some((secret) => secret.role === role);
    if (has("added")) {
      const sql = "UPDATE application_secret SET role = ? WHERE application_id = ? AND role = ?";
      const move = (from: string, to: string) => [sql, to, id, from] as const;
      this.#write(application, "promotes the added secret", move("current", "previous"), move("added", "current"));
    } else if (has("previous")) {
      const sql = "DELETE FROM application_secret WHERE application_id = ? AND role = 'previous'";
      this.#write(application, "retires the previous secret", [sql, id]);
    } else {
      this.#addSecret(application, "added");
    }
  }

  #addSecret(application: ApplicationPlan, role: "current" | "added"): void {
    const place = this.#secrets++;
    const secret = `bdss_simulated-${place}`;
    const sql = `INSERT INTO application_secret (id, application_id, role, digest, sealed, sealing_version, created_at)
      VALUES (?, ?, ?, ?, ?, 1, ?)`;
    const row = [`sec_${place}`, application.id, role, digestOf(secret), secret, this.world.timeline.now];
    this.#write(application, `adds the ${role} secret`, [sql, ...row]);
  }

  /** One transaction. */
  #write({ id }: ApplicationPlan, what: string, ...statements: Bound[]): void {
    this.world.trace.add("administrator", what);
    this.world.d1.of(id).execute(statements.map(([sql, ...parameters]) => ({ sql, parameters })));
  }
}
