import type { World } from "./world.ts";

/** Rounds in which everything that is due gets done; each has time for one attempt of every event. */
const MAX_ROUNDS = 60;
const MINUTE = 60_000;

/** Lets time pass, with its sweeps, until nothing is left to do. */
export async function drain(world: World): Promise<void> {
  const { timeline, isolates, trace, verdict } = world;
  for (let round = 0; round < MAX_ROUNDS; round++) {
    await timeline.rest();
    const due = nextDue(world);
    if (due === null) return;
    await timeline.sleep(Math.max(0, due - timeline.now) + MINUTE);
    trace.add("seed", "sweep");
    await isolates.sweep();
  }
  verdict.expect(false, "all that was left undone comes to an end", () => JSON.stringify(leftOver(world)));
}

/** When the next thing is due that only the sweep does, in milliseconds; null when nothing is left. */
function nextDue(world: World): number | null {
  const times = leftOver(world).map(({ due }) => Number(due));
  return times.length === 0 ? null : Math.min(...times);
}

function leftOver({ d1 }: World) {
  return d1.look(`
    SELECT 'event' AS what, id, due_at AS due FROM webhook_event WHERE state = 'pending'
    UNION ALL
    SELECT 'held event', webhook_event.id, 0 FROM webhook_event JOIN application ON application.id = application_id
      WHERE state = 'held' AND webhook_held_at IS NULL
    UNION ALL
    SELECT 'invitation', digest, expires_at_time FROM invitation WHERE state = 'pending'
    UNION ALL
    SELECT 'number', digest, 0 FROM invitation WHERE state IN ('revoked', 'expired') AND released_at IS NULL`);
}
