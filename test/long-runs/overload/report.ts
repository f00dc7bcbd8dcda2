import type { OverloadResult, Plan } from "./run.ts";

/** What the run showed that it must not, in sentences; empty when all is well. */
export function failures({ overload, again, findings, stored, recoveredAfterSeconds }: OverloadResult): string[] {
  const allowed = (status: string) => status.startsWith("2") || status === "429" || status === "503";
  const forbidden = [...Object.entries(overload.statuses), ...Object.entries(again.statuses)].filter(
    ([status]) => !allowed(status),
  );
  return [
    ...forbidden.map(([status, count]) => `${count} calls were answered ${status}.`),
    ...(findings.wrongCount > 0 ? [`${findings.wrongCount} wrong answers: ${findings.wrong.join("; ")}.`] : []),
    ...stored.contradictions.slice(0, 10).map((text) => `${text}.`),
    ...(recoveredAfterSeconds === null ? ["It was not as fast as before within the time."] : []),
    ...(again.latencies.length < again.offered ? ["Phones that asked again were not all answered."] : []),
  ];
}

/** One table. */
export function summary(result: OverloadResult, { factor, seconds, connections }: Plan): string {
  const { sustainableRate, before, overload, after, memoryMegabytes, findings, stored, again } = result;
  const perSecond = (count: number) => `${count} (${Math.round(count / seconds)}/s)`;
  const latency = ({ p50Ms, p99Ms }: { p50Ms: number; p99Ms: number }) => `${p50Ms} / ${p99Ms} ms`;
  const { recoveredAfterSeconds } = result;
  const recovered = recoveredAfterSeconds === null ? "no" : `within ${recoveredAfterSeconds.toFixed(1)} s`;
  const answered = overload.latencies.length;
  const refused = (overload.statuses[429] ?? 0) + (overload.statuses[503] ?? 0);
  const rows: [name: string, value: string][] = [
    ["sustainable, 64 connections", `${Math.round(sustainableRate)}/s`],
    [`offered for ${seconds} s`, `${perSecond(overload.offered)}, wanted ${Math.round(sustainableRate * factor)}/s`],
    ["answered 2xx", perSecond(answered)],
    ["refused 429 or 503", perSecond(refused)],
    [`gave up, no connection of ${connections}`, perSecond(overload.gaveUp.unsent)],
    ["gave up waiting for the answer", perSecond(overload.gaveUp.sent)],
    [
      "connection refused or lost",
      Object.entries(overload.unreached)
        .map((pair) => pair.join(" "))
        .join(", ") || "0",
    ],
    ["load generator busy", `${Math.round(overload.utilization * 100)} %`],
    ["p50 / p99, light load before", latency(before)],
    ["p50 / p99, overload, of 2xx", latency(overload)],
    ["p50 / p99, light load after", latency(after)],
    ["as fast as before", recovered],
    ["memory before, highest, after", memoryMegabytes ? `${Object.values(memoryMegabytes).join(" / ")} MB` : "unknown"],
    ["wrong answers", String(findings.wrongCount)],
    ["signatures verified", String(findings.verifiedSignatures)],
    ["phones with a badge", `${findings.answered}, ${again.latencies.length} of them only when they asked again`],
    ["badges and events in D1", `${stored.badges} and ${stored.events}, ${stored.untold} untold`],
    ["contradictions", String(stored.contradictions.length)],
  ];
  return rows.map(([name, value]) => `${name.padEnd(34)} ${value}`).join("\n");
}
