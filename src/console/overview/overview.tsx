import type { Statistics } from "../../client/index.ts";
import { useLoaded } from "../parts/hooks.ts";
import { hrefOf } from "../parts/route.ts";
import { useSettings } from "../parts/settings.ts";
import { Empty, Show, Title } from "../parts/states.tsx";
import { count, counted, Digits, When } from "../parts/texts.tsx";
import { BADGE_STATE_WORDS, INVITATION_STATE_WORDS, outcomeWords } from "../words.ts";
import { Attention, numbersWords } from "./attention.tsx";
import { type Bar, Bars, DayColumns } from "./charts.tsx";

/** What needs attention, then counts, each a link to its list. */
export function Overview() {
  const statistics = useLoaded((server, signal) => server.getStatistics({ signal }));
  return (
    <>
      <Title>Today</Title>
      <Show loaded={statistics} what="the overview">
        {(value) => <Day statistics={value} />}
      </Show>
    </>
  );
}

function Day({ statistics }: { statistics: Statistics }) {
  const { badgesByState: badges, invitations, numbers } = statistics;
  const counts = [
    { title: "Badges in use", count: badges.active + badges.suspended, href: hrefOf("badges") },
    { title: "of them suspended", count: badges.suspended, href: hrefOf("badges", { state: "suspended" }) },
    {
      title: "Invitations not used yet",
      count: invitations.pending,
      href: hrefOf("visitors", { state: "pending", day: "all" }),
    },
    { title: "Badge numbers left", count: numbers.left, href: hrefOf("figures") },
  ];
  return (
    <>
      <Attention statistics={statistics} />
      {numbers.issued + numbers.reserved + numbers.retired === 0 && (
        <Empty>
          No badges yet. They appear here as soon as phones log in; <a href="/docs">the reference</a> says how.
        </Empty>
      )}
      <h2>At a glance</h2>
      <ul class="counts">
        {counts.map(({ title, count: number, href }) => (
          <li key={title}>
            <a href={href}>
              <span class="figure">{count(number)}</span> {title}
            </a>
          </li>
        ))}
      </ul>
      <DayColumns days={statistics.badgesPerDay} />
      <p class="hint">
        Counted <When at={statistics.asOf} />. <a href={hrefOf("figures")}>All figures</a>
      </p>
    </>
  );
}

/** Counts of badges, invitations and deliveries, as charts. */
export function FiguresView() {
  const statistics = useLoaded((server, signal) => server.getStatistics({ signal }));
  return (
    <>
      <Title>Figures</Title>
      <Show loaded={statistics} what="the overview">
        {(value) => <Figures statistics={value} />}
      </Show>
    </>
  );
}

const FIELDS = [
  ["os", "Operating systems"],
  ["osVersion", "System versions"],
  ["deviceModel", "Device models"],
  ["sdkVersion", "SDK versions"],
] as const;

function Figures({ statistics }: { statistics: Statistics }) {
  const { webhookUrl } = useSettings();
  const { badges, badgesByState, badgesPerDay, invitations, deliveries, sampled, asOf } = statistics;
  return (
    <>
      <p class="hint">
        Counted <When at={asOf} />. Devices are those of the newest {counted(sampled, "badge")}.
      </p>
      <div class="panels">
        <NumbersLeft statistics={statistics} />
        <DayColumns days={badgesPerDay} />
        <Bars title="Badges by state" unit="badges" bars={barsOf(badgesByState, BADGE_STATE_WORDS, "badges")} />
        <Bars
          title="Invitations by state"
          unit="invitations"
          bars={barsOf(invitations, INVITATION_STATE_WORDS, "visitors")}
        />
        <Bars
          title="Deliveries by outcome"
          unit="deliveries"
          bars={deliveries.map(({ state, outcome, events }) => ({
            label: outcomeWords(state, outcome),
            count: events,
            href: hrefOf("deliveries", { state }),
          }))}
          empty={webhookUrl === null ? "The application has no webhook address, so nothing is sent." : undefined}
        />
        {FIELDS.map(([field, title]) => (
          <Bars key={field} title={title} unit="badges" bars={valueBars(badges[field])} />
        ))}
      </div>
    </>
  );
}

function NumbersLeft({ statistics }: { statistics: Statistics }) {
  const { numbers } = statistics;
  const words = numbersWords(statistics);
  const { firstNumber, lastNumber } = useSettings();
  const percent = numbers.used > 0 && numbers.usedPercent < 1 ? "less than 1 %" : `${count(numbers.usedPercent)} %`;
  return (
    <section class="panel">
      <h2>Numbers left</h2>
      {words !== null && (
        <p class={words.isUrgent ? "urgent" : undefined}>
          {words.text} {words.advice}
        </p>
      )}
      <p class="figure">{count(numbers.left)}</p>
      <p>
        of {count(numbers.size)}; {count(numbers.used)} used ({percent})
      </p>
      <meter
        min={0}
        max={numbers.size}
        high={numbers.size * 0.9}
        optimum={0}
        value={numbers.used}
        aria-label={`${percent} of the numbers are used`}
      />
      <p class="hint">
        From <Digits value={firstNumber} /> to <Digits value={lastNumber} />.
      </p>
    </section>
  );
}

const barsOf = <Name extends string>(
  counts: Record<Name, number>,
  words: Readonly<Record<Name, string>>,
  view: string,
): Bar[] =>
  namesOf(words).map((name) => ({
    label: words[name],
    count: counts[name],
    href: hrefOf(view, { state: name, ...(view === "visitors" && { day: "all" }) }),
  }));

const namesOf = <Name extends string>(words: Readonly<Record<Name, string>>): Name[] =>
  Object.keys(words).filter((name): name is Name => Object.hasOwn(words, name));

function valueBars({ values, others }: Statistics["badges"]["os"]): Bar[] {
  const bars = values.map(({ value, badges }) => ({ label: value ?? "Unknown", count: badges }));
  return others > 0 ? [...bars, { label: "Others", count: others }] : bars;
}
