import { count, eq, sql } from "drizzle-orm";
import { MAX_DATABASE_BYTES, UNUSED_REGISTRATION_HOURS } from "../../shared/limits/platform-limits.ts";
import { application, applicationHead } from "../../shared/schema.ts";
import type { Registration } from "../../shared/script-commands.ts";
import { APPLICATION } from "../application/record.ts";
import { command, group, option } from "../command-line/command.ts";
import { counted, formatNumber, tableLines } from "../command-line/output.ts";
import type { Home } from "../platform/homes.ts";
import { homeSubmitter } from "../script-command/submit.ts";
import { type CheckedHomes, checkHomes, type RegistrationMismatch } from "./check.ts";
import { releaseNumbers } from "./clear-registration.ts";

export const homeCommands = group("home", {
  summary: "list the homes, and check the register of their numbers",
  description:
    "A home is one D1 database with the allocators of its applications. An application stays in one home for ever, and " +
    "its ID shows which: app_… is in home 1, app2_… in home 2. init --home creates another home.",
  commands: [
    command("list", {
      summary: "list the homes and how full they are",
      description:
        "Lists the homes with the place that wrangler.toml gives (HOME_N), their applications, the badges issued so far, " +
        "the bytes of the database and their share of the 10 GB that D1 holds.",
      examples: ["", "--env production --json"],
      work: ({ homes }) => homes.map(measureHome),
      text: homeTable,
    }),
    command("check", {
      summary: "check the register of number ranges against the homes",
      description:
        "The register of number ranges keeps the numbers of all homes apart. Home 1's scheduler stores it, so it survives a " +
        "restore of D1. This command registers numbers that the register lacks. It also reports registrations over " +
        `${UNUSED_REGISTRATION_HOURS} hours old whose home has no such application: a creation did not finish, or the home was ` +
        "restored to a time before it. No application gets their numbers. The exit code is 1 if applications have numbers " +
        "in common.\n\n" +
        "--release clears such a registration. Phones and doors may still hold its numbers, so clear it only if none was issued.",
      options: { release: option("--release <id>", "clear the registration of this application", APPLICATION.parse) },
      examples: ["", "--env production --json", "--release app_…"],
      async work(session, { release }) {
        const { homes, output } = session;
        const submit = homeSubmitter(session);
        const released = release === undefined ? null : await releaseNumbers(homes, submit, release, output.note);
        return { ...(await checkHomes(homes, submit)), released };
      },
      text: checkedText,
      failure: ({ overlaps }) =>
        overlaps[0] &&
        `${counted(overlaps.length, "pair")} of applications have numbers in common, the first ${overlaps[0].join(" and ")}: disable one of each.`,
    }),
  ],
});

/** Badges by the last ordinal of each application: counting would read every badge. */
const COUNTS = { applications: count(), badges: sql<number>`coalesce(sum(${applicationHead.lastOrdinal}), 0)` };

/**
 * A home as `home list --json` prints it. It counts all badges issued so far, including ended ones.
 */
async function measureHome({ number, place, database }: Home) {
  const [[counts], { meta }] = await database.run((orm) =>
    orm.batch([
      orm.select(COUNTS).from(application).leftJoin(applicationHead, eq(applicationHead.applicationId, application.id)),
      orm.run(sql`SELECT 1`),
    ]),
  );
  const { applications, badges } = counts ?? { applications: 0, badges: 0 };
  // D1 reports the size of the database with every result (D1: Return object).
  const bytes = meta.size_after;
  const share = bytes / MAX_DATABASE_BYTES;
  return { home: number, place, applications, badges, bytes, share };
}

function homeTable(homes: readonly Awaited<ReturnType<typeof measureHome>>[]): string {
  const rows = homes.map(({ home, place, applications, badges, bytes, share }) => [
    home,
    place ?? "-",
    formatNumber(applications),
    formatNumber(badges),
    formatNumber(bytes),
    `${(share * 100).toFixed(1)} %`,
  ]);
  return tableLines(["HOME", "PLACE", "APPLICATIONS", "BADGES", "BYTES", "OF 10 GB"], rows, "");
}

const REASONS = {
  recent: `its home has no such application yet: registered less than ${UNUSED_REGISTRATION_HOURS} hours ago`,
  "home-not-bound": "wrangler.toml does not bind its home",
  growing: "more than the application has; repeat application update --last",
} satisfies Record<Exclude<RegistrationMismatch, "unused">, string>;

function checkedText(checked: CheckedHomes & { released: Registration | null }): string {
  const { homes, applications, registered, unused, kept, overlaps, released } = checked;
  const rows = [
    ...(released ? [[...cells(released), "released: its numbers are free"]] : []),
    ...registered.map((range) => [...cells(range), "registered: the register lacked it"]),
    ...unused.map((range) => [...cells(range), "there is no such application; --release clears it"]),
    ...kept.map((range) => [...cells(range), REASONS[range.reason]]),
    ...overlaps.map(([one, other]) => [other, "", `overlaps ${one}`]),
  ];
  const found = `${counted(homes, "home")}, ${counted(applications, "application")}.`;
  if (rows.length === 0) return `${found} The register of number ranges is correct.`;
  return `${found}\n\n${tableLines(["APPLICATION", "NUMBERS", ""], rows, "")}`;
}

const cells = ({ applicationId, firstNumber, lastNumber }: CheckedHomes["registered"][number]): string[] => [
  applicationId,
  `${firstNumber}-${lastNumber}`,
];
