import { digestOf } from "../../../../src/shared/identifiers.ts";
import type { ProofSettings } from "../invariants/bindings.ts";
import { deviceKeyOf } from "../invariants/rows.ts";
import { Member } from "../member.ts";
import type { ApplicationPlan } from "../plan.ts";
import { signingPair } from "../service/isolates.ts";

const HOUR = 3_600_000;
/** Numbers by which a range grows. */
const GROWTH = 3;

/** Makes applications and changes them while they are in use, in the transactions of the administration script. */
export class Administrator extends Member {
  readonly #dice = this.world.dice.of("administrator");
  #keys = 0;
  #secrets = 0;

  async create(application: ApplicationPlan): Promise<void> {
    const { d1, timeline, credentials } = this.world;
    const { id, firstNumber, lastNumber, webhookUrl, events, reuseAfterSeconds } = application;
    const sql = `INSERT INTO application (id, name, first_number, last_number, reuse_after_seconds, sealed_device_key,
      sealing_version, webhook_url, events, created_at) VALUES (?, 'Simulated', ?, ?, ?, ?, 1, ?, ?, ?)`;
    const parameters = [
      id,
      firstNumber,
      lastNumber,
      reuseAfterSeconds,
      deviceKeyOf(id),
      webhookUrl,
      events.join(),
      timeline.now,
    ];
    d1.of(id).execute([{ sql, parameters }]);
    this.#rotateKey(application);
    const secret = await this.#insertSecret(application, "current");
    credentials.promoted(secret);
    // Some are in the middle of a rotation when the seed begins.
    for (let steps = this.#dice.below(3); steps > 0; steps--) await this.#rotateSecret(application);
    const bindUntil = this.#dice.chance(0.3) ? timeline.now + 4 * HOUR : null;
    this.#set(application, { requireProof: this.#dice.chance(0.1), bindUntil });
  }

  /** The secret that the application's server uses. */
  secretOf({ id }: ApplicationPlan): string {
    const [row] = this.world.d1.look(
      "SELECT sealed FROM application_secret WHERE application_id = ? AND role = 'current'",
      id,
    );
    return String(row?.sealed);
  }

  async act(application: ApplicationPlan): Promise<void> {
    switch (this.#dice.below(6)) {
      case 0:
        return this.#rotateKey(application);
      case 1:
        return this.#rotateSecret(application);
      case 2:
        return this.setUrl(application);
      case 3:
        return this.#growRange(application);
      case 4:
        return this.#set(application, { requireProof: this.#dice.chance(0.4) });
      case 5:
        return this.#set(application, { bindUntil: this.#someTime() });
    }
  }

  /** Sets the URL anew, as it is: what was held is sent again. */
  setUrl({ id }: ApplicationPlan): void {
    this.world.trace.add("administrator", "sets the webhook URL");
    const sql = `UPDATE application SET webhook_held_at = NULL, webhook_failing_since = NULL, webhook_failures = 0
      WHERE id = ? AND webhook_url IS NOT NULL`;
    this.world.d1.of(id).execute([{ sql, parameters: [id] }]);
  }

  /** So that everybody gets a number in the end. */
  stopRequiringProofs(application: ApplicationPlan): void {
    this.#set(application, { requireProof: false });
  }

  #someTime(): number | null {
    const { timeline, plan } = this.world;
    const moments = [null, timeline.now - 1, timeline.now + this.#dice.below(4 * plan.thinkMilliseconds)] as const;
    return this.#dice.oneOf([...moments, timeline.now + 4 * HOUR]);
  }

  /** `--require-proof`, `--bind-until` */
  #set({ id }: ApplicationPlan, changed: Partial<ProofSettings>): void {
    const { d1, trace, bindings } = this.world;
    const settings = bindings.set(id, changed);
    trace.add("administrator", `sets ${JSON.stringify(settings)}`);
    const sql = "UPDATE application SET require_proof = ?, bind_until = ? WHERE id = ?";
    d1.of(id).execute([{ sql, parameters: [settings.requireProof, settings.bindUntil, id] }]);
  }

  #rotateKey({ id }: ApplicationPlan): void {
    const { d1, timeline, trace } = this.world;
    trace.add("administrator", "adds a signing key");
    const place = this.#keys++;
    const sql = `INSERT INTO signing_key (application_id, kid, public_key, sealed, sealing_version, created_at)
      VALUES (?, ?, ?, ?, 1, ?)`;
    const { publicKey } = signingPair(place);
    d1.of(id).execute([{ sql, parameters: [id, `key-${place}`, publicKey, String(place), timeline.now] }]);
  }

  /** The next of three steps: add, promote, retire. */
  async #rotateSecret(application: ApplicationPlan): Promise<void> {
    const { d1, trace, credentials } = this.world;
    const { id } = application;
    const secrets = d1.look("SELECT role, sealed FROM application_secret WHERE application_id = ?", id);
    const inRole = (role: string) => secrets.find((secret) => secret.role === role)?.sealed;
    const [added, previous] = [inRole("added"), inRole("previous")];
    if (added !== undefined) {
      trace.add("administrator", "promotes the added secret");
      const sql = "UPDATE application_secret SET role = ? WHERE application_id = ? AND role = ?";
      d1.of(id).execute([
        { sql, parameters: ["previous", id, "current"] },
        { sql, parameters: ["current", id, "added"] },
      ]);
      return credentials.promoted(String(added));
    }
    if (previous !== undefined) {
      trace.add("administrator", "retires the previous secret");
      const sql = "DELETE FROM application_secret WHERE application_id = ? AND role = 'previous'";
      d1.of(id).execute([{ sql, parameters: [id] }]);
      return credentials.retired(String(previous));
    }
    trace.add("administrator", "adds a secret");
    await this.#insertSecret(application, "added");
  }

  /** @returns the secret */
  async #insertSecret({ id }: ApplicationPlan, role: "current" | "added"): Promise<string> {
    const { d1, timeline, credentials } = this.world;
    const place = this.#secrets++;
    const secret = `bdss_simulated-${place}`;
    const sql = `INSERT INTO application_secret (id, application_id, role, digest, sealed, sealing_version, created_at)
      VALUES (?, ?, ?, ?, ?, 1, ?)`;
    const digest = await digestOf(secret);
    d1.of(id).execute([{ sql, parameters: [`sec_${place}`, id, role, digest, secret, timeline.now] }]);
    credentials.added(id, secret);
    return secret;
  }

  #growRange(application: ApplicationPlan): void {
    this.world.trace.add("administrator", "lets the range grow");
    application.lastNumber += GROWTH;
    const sql = "UPDATE application SET last_number = ? WHERE id = ?";
    this.world.d1.of(application.id).execute([{ sql, parameters: [application.lastNumber, application.id] }]);
  }
}
