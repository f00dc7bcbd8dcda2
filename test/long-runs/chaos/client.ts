import type { Random } from "./random.ts";

/** What the service has answered so far: what it must still say when it is asked again. */
export interface Answered {
  /** Number by user device, `udid/userId`. */
  badges: Map<string, string>;
  /** Invitations that were answered and not ended since: token and number. */
  pending: Map<string, string>;
  /** Calls by outcome. */
  counts: Record<"answered" | "lost", number>;
}

export const nothingAnswered = (): Answered => ({
  badges: new Map(),
  pending: new Map(),
  counts: { answered: 0, lost: 0 },
});

/** One client that calls the service at random and notes every answer; calls that get none are as good as not made. */
export class ChaosClient {
  readonly #origin: string;
  readonly #headers: { applicationid: string; applicationsecret: string };
  readonly #random: Random;
  readonly #name: string;
  readonly #answered: Answered;
  #devices = 0;
  /** Calls whose answer was lost: made again later, as a phone does. */
  readonly #lost: { udid: string; userId: string; token: string | null }[] = [];

  constructor(
    origin: string,
    credentials: { applicationId: string; applicationSecret: string },
    random: Random,
    name: string,
    answered: Answered,
  ) {
    this.#origin = origin;
    this.#headers = { applicationid: credentials.applicationId, applicationsecret: credentials.applicationSecret };
    this.#random = random;
    this.#name = name;
    this.#answered = answered;
  }

  /** Does one thing. @throws Error when an answer contradicts an earlier one */
  async step(): Promise<void> {
    const dice = this.#random.next();
    const lost = this.#lost.pop();
    if (lost) return this.#badge(lost.udid, lost.userId, lost.token);
    if (dice < 0.5) return this.#badge(`${this.#name}-${this.#devices++}`, "user", null);
    if (dice < 0.65) return this.#askAgain();
    if (dice < 0.8) return this.#invite();
    const token = this.#takePending();
    if (token === null) return this.#invite();
    if (dice < 0.92) return this.#badge(`${this.#name}-${this.#devices++}`, "guest", token);
    return this.#revoke(token);
  }

  async #askAgain(): Promise<void> {
    const known = this.#random.pick([...this.#answered.badges.keys()].filter((key) => key.startsWith(this.#name)));
    if (known === undefined) return;
    const [udid = "", userId = ""] = known.split("/");
    await this.#badge(udid, userId, null);
  }

  async #badge(udid: string, userId: string, token: string | null): Promise<void> {
    const key = `${udid}/${userId}`;
    const body = { userId, ...(token !== null && { invitationToken: token }) };
    const answer = await this.#call("POST", "/v1/badge", body, { udid });
    if (answer === null) {
      this.#lost.push({ udid, userId, token });
      return;
    }
    const known = this.#answered.badges.get(key);
    if (answer.status === 201 && known !== undefined)
      throw new Error(`${key} had ${known} and was given another badge`);
    if (answer.status !== 201 && answer.status !== 200) throw new Error(`${key}: unexpected answer ${answer.status}`);
    const number = String(answer.body.badgeId);
    if (known !== undefined && known !== number) throw new Error(`${key} had ${known} and was answered ${number}`);
    this.#answered.badges.set(key, number);
  }

  async #invite(): Promise<void> {
    const expiresAt = new Date(Date.now() + 3600_000).toISOString();
    const answer = await this.#call("POST", "/v1/invitation", { expiresAt }, { udid: `${this.#name}-host` });
    if (answer?.status === 201) this.#answered.pending.set(String(answer.body.id), String(answer.body.badgeId));
    else if (answer !== null) throw new Error(`an invitation was answered ${answer.status}`);
  }

  async #revoke(token: string): Promise<void> {
    const answer = await this.#call("PATCH", `/v1/invitation/${token}/revoke`, null, {});
    if (answer !== null && answer.status !== 200) throw new Error(`a revocation was answered ${answer.status}`);
  }

  #takePending(): string | null {
    const token = this.#random.pick([...this.#answered.pending.keys()]);
    if (token === undefined) return null;
    this.#answered.pending.delete(token);
    return token;
  }

  /** @returns null when there was no answer, or 503: nothing is known then */
  async #call(
    method: string,
    path: string,
    body: unknown,
    headers: Record<string, string>,
  ): Promise<{ status: number; body: Record<string, unknown> } | null> {
    try {
      const response = await fetch(this.#origin + path, {
        method,
        headers: { ...this.#headers, ...headers },
        ...(body !== null && { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(20_000),
      });
      const parsed: Record<string, unknown> = await response.json();
      if (response.status === 503) throw new Error("503");
      this.#answered.counts.answered++;
      return { status: response.status, body: parsed };
    } catch {
      this.#answered.counts.lost++;
      return null;
    }
  }
}
