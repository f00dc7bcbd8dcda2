import type { ComponentChildren } from "preact";
import type { ListedBadge, Statistics } from "../../client/index.ts";
import { allDoors } from "../doors/knowing.ts";
import { useLoaded } from "../parts/hooks.ts";
import { hrefOf } from "../parts/route.ts";
import { useSettings } from "../parts/settings.ts";
import { count, counted } from "../parts/texts.tsx";
import { isProblem } from "../words.ts";

const DAY_MILLISECONDS = 24 * 3600 * 1000;
/** Ending badges are counted up to this many. */
const MOST_ENDING = 100;
/** The service reads more rows for a larger page: if few badges have an end, that saves calls. */
const PER_PAGE = 1000;
/** A range that is used up to this percentage is low. */
const LOW_PERCENT = 90;

/** A connected door calls every minute. One that has not called for an hour is down, or has no network. */
const SILENT_MILLISECONDS = 3600 * 1000;
/** How many doors are named one by one. */
const MOST_NAMED = 3;

/** What needs attention, each with a link to its list. */
export function Attention({ statistics }: { statistics: Statistics }) {
  const { webhookUrl, statusList } = useSettings();
  const ending = useLoaded(async (server, signal) => {
    const endsBefore = new Date(Date.now() + 7 * DAY_MILLISECONDS);
    const found: ListedBadge[] = [];
    for await (const { badges, nextCursor } of server.searchBadges({
      endsBefore,
      order: "newest",
      perPage: PER_PAGE,
      signal,
    })) {
      found.push(...badges);
      if (found.length >= MOST_ENDING || nextCursor === null)
        return { number: found.length, isMore: nextCursor !== null };
    }
    return { number: found.length, isMore: false };
  });
  const silent = useLoaded(async (server, signal) => {
    const doors = statusList ? await allDoors(server, signal) : [];
    const before = Date.now() - SILENT_MILLISECONDS;
    return doors.filter(({ seenAt }) => seenAt !== undefined && Date.parse(seenAt) < before).map(({ name }) => name);
  });
  const problems = statistics.deliveries
    .filter(({ state, outcome }) => isProblem(state, outcome))
    .reduce((sum, { events }) => sum + events, 0);
  const items: ComponentChildren[] = [];
  const numbers = numbersWords(statistics);
  if (numbers !== null) {
    items.push(
      <li key="numbers" class={numbers.isUrgent ? "urgent" : undefined}>
        <a href={hrefOf("figures")}>{numbers.text}</a> {numbers.advice}
      </li>,
    );
  }
  if (problems > 0 && webhookUrl !== null) {
    items.push(
      <li key="deliveries" class="urgent">
        <a href={hrefOf("deliveries", { state: "problems" })}>
          {counted(problems, "delivery has failed", "deliveries have failed")}
        </a>
        . Your systems may not know of badges that were issued or ended.
      </li>,
    );
  }
  if (silent.value !== null && silent.value.length > 0) {
    const names = silent.value;
    const others = names.length > MOST_NAMED ? ` and ${counted(names.length - MOST_NAMED, "other")}` : "";
    items.push(
      <li key="doors" class="urgent">
        <a href={hrefOf("doors")}>
          {counted(names.length, "door has", "doors have")} not called for an hour:{" "}
          {names.slice(0, MOST_NAMED).join(", ")}
          {others}
        </a>
        . They use their last lists. Are they on, and do they have a network?
      </li>,
    );
  }
  if (ending.value !== null && ending.value.number > 0) {
    const { number, isMore } = ending.value;
    items.push(
      <li key="ending">
        <a href={hrefOf("badges", { ends: "7" })}>
          {isMore ? `More than ${count(number)} badges end` : counted(number, "badge ends", "badges end")} within a week
        </a>
        . Extend them, so that nobody is locked out.
      </li>,
    );
  }
  return (
    <section class="attention" aria-labelledby="attention">
      <h2 id="attention">Needs attention</h2>
      {silent.problem !== null && <p class="hint">The last calls of doors could not be read.</p>}
      {ending.problem !== null && <p class="hint">Badges that end soon could not be counted.</p>}
      {items.length > 0 && <ul>{items}</ul>}
      {items.length === 0 && [ending, silent].every(({ isLoading, problem }) => !isLoading && problem === null) && (
        <p class="all-well">Nothing needs your attention.</p>
      )}
    </section>
  );
}

/** How many numbers are left, in words; null if there are enough. */
export function numbersWords({ numbers }: Statistics): { text: string; advice: string; isUrgent: boolean } | null {
  const { left, size, coolingDown, usedPercent } = numbers;
  if (left === 0) {
    const later = coolingDown > 0 ? ` ${counted(coolingDown, "number")} of ended invitations will be free later.` : "";
    return {
      text: "No badge numbers are left:",
      advice: `nobody new can get a badge.${later} Ask your administrator to extend the range.`,
      isUrgent: true,
    };
  }
  if (usedPercent < LOW_PERCENT) return null;
  return {
    text: `Badge numbers are running out: ${count(left)} of ${count(size)} left.`,
    advice: "Ask your administrator to extend the range.",
    isUrgent: left < size / 100,
  };
}
