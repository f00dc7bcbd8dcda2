import type { Statistics } from "../../client/index.ts";
import { useLoaded, useSession } from "../parts/hooks.ts";
import { Empty, Show, Title } from "../parts/states.tsx";
import { count, counted, Digits, When } from "../parts/texts.tsx";
import { BADGE_STATE_WORDS, INVITATION_STATE_WORDS, isProblem, outcomeWords } from "../words.ts";
import { type Bar, Bars, DayColumns } from "./charts.tsx";

/** How many badges there are, of which kind, and how webhooks fare. */
export function Overview() {
  const statistics = useLoaded((server, signal) => server.getStatistics({ signal }));
  return (
    <>
      <Title>Overview</Title>
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
  const { webhookUrl } = useSession().application;
  const { numbers, badges, badgesByState, badgesPerDay, invitations, deliveries, asOf } = statistics;
  const problems = deliveries
    .filter(({ state, outcome }) => isProblem(state, outcome))
    .reduce((sum, { events }) => sum + events, 0);
  return (
    <>
      <p class="hint">
        Counted <When at={asOf} />, at most every five minutes.
      </p>
      {numbers.issued + numbers.reserved + numbers.retired === 0 && (
        <Empty>
          No badges yet. They appear here as soon as phones log in; <a href="/docs">the reference</a> says how, and lets
          you try it.
        </Empty>
      )}
      <div class="panels">
        <NumbersLeft statistics={statistics} />
        <DayColumns days={badgesPerDay} />
        <Bars title="Badges by state" unit="badges" bars={barsOf(badgesByState, BADGE_STATE_WORDS)} />
        <Bars title="Invitations by state" unit="invitations" bars={barsOf(invitations, INVITATION_STATE_WORDS)} />
        <Bars
          title="Deliveries by outcome"
          unit="deliveries"
          bars={deliveries.map(({ state, outcome, events }) => ({
            label: outcomeWords(state, outcome),
            count: events,
          }))}
          empty={webhookUrl === null ? "The application has no webhook address, so nothing is sent." : undefined}
          note={problems > 0 && <a href="#deliveries">{counted(problems, "delivery", "deliveries")} with problems</a>}
        />
        {FIELDS.map(([field, title]) => (
          <Bars key={field} title={title} unit="badges" bars={valueBars(badges[field])} />
        ))}
      </div>
    </>
  );
}

function NumbersLeft({ statistics: { numbers } }: { statistics: Statistics }) {
  const { firstNumber, lastNumber } = useSession().application;
  const percent = numbers.used > 0 && numbers.usedPercent < 1 ? "less than 1 %" : `${count(numbers.usedPercent)} %`;
  return (
    <section class="panel">
      <h2>Numbers left</h2>
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

const barsOf = <Name extends string>(counts: Record<Name, number>, words: Readonly<Record<Name, string>>): Bar[] =>
  namesOf(words).map((name) => ({ label: words[name], count: counts[name] }));

const namesOf = <Name extends string>(words: Readonly<Record<Name, string>>): Name[] =>
  Object.keys(words).filter((name): name is Name => Object.hasOwn(words, name));

function valueBars({ values, others }: Statistics["badges"]["os"]): Bar[] {
  const bars = values.map(({ value, badges }) => ({ label: value ?? "Not told", count: badges }));
  return others > 0 ? [...bars, { label: "Others", count: others }] : bars;
}
