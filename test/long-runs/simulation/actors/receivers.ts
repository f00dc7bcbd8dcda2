import { Member } from "../member.ts";
import type { Received, Reply } from "../platform/network.ts";

/** What receivers do, apart from taking the event. */
const MODES = ["healthy", "slow", "broken", "throttling", "gone", "hanging", "flapping", "endless"] as const;
type Mode = (typeof MODES)[number];

/** How long a receiver stays in a mode, in thinking times of the actors. */
const MODE_THOUGHTS = 4;

/** The applications' webhook endpoints: mostly healthy, often something else for a while. */
export class Receivers extends Member {
  readonly #dice = this.world.dice.of("receivers");
  readonly #modes = new Map<string, { mode: Mode; until: number }>();
  receive(received: Received): Reply {
    const { deliveries, verdict, plan, trace } = this.world;
    const application = plan.applications.find(({ webhookUrl }) => webhookUrl === received.url);
    verdict.expect(application !== undefined, "webhooks go to the URL that is set", received.url);
    if (!application) return { kind: "never" };
    const { eventId, attemptsBefore } = deliveries.check(application.id, received);
    const mode = this.#modeOf(received.url);
    const reply = this.#reply(mode, attemptsBefore);
    if (reply.kind === "response" && reply.status < 300) deliveries.accept(eventId);
    trace.add("receiver", `${mode} ${eventId}: ${reply.kind === "response" ? reply.status : reply.kind}`);
    return reply;
  }

  #modeOf(url: string): Mode {
    const { timeline, plan, faults } = this.world;
    if (!faults.isOn) return "healthy";
    const known = this.#modes.get(url);
    if (known && known.until > timeline.now) return known.mode;
    const mode = this.#dice.chance(0.4) ? "healthy" : this.#dice.oneOf(MODES);
    const until = timeline.now + this.#dice.below(MODE_THOUGHTS * plan.thinkMilliseconds * plan.acts);
    this.#modes.set(url, { mode, until });
    return mode;
  }

  #reply(mode: Mode, attemptsBefore: number): Reply {
    const quick = this.#dice.below(200);
    const respond = (status: number, afterMilliseconds = quick, headers = {}, body: string | null = null): Reply => ({
      kind: "response",
      status,
      afterMilliseconds,
      headers,
      body,
      isEndless: mode === "endless",
    });
    switch (mode) {
      case "healthy":
        return respond(this.#dice.chance(0.5) ? 200 : 204);
      case "slow":
        return respond(202, this.#dice.below(20_000));
      case "broken":
        return respond(this.#dice.oneOf([500, 502, 404, 301] as const), quick, {}, "no");
      case "throttling":
        return respond(429, quick, { "retry-after": String(this.#dice.below(200)) });
      case "gone":
        return respond(410);
      case "hanging":
        return { kind: "never" };
      case "flapping":
        return respond(attemptsBefore === 0 || this.#dice.chance(0.5) ? 503 : 200);
      case "endless":
        return respond(200, quick, {}, "and so on, and so on");
    }
  }
}
