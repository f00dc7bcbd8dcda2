import type { State } from "./refusals.ts";

/** What a sentence may need. */
interface Circumstances {
  /** When the pass begins; null if unknown. */
  begins: string | null;
  /** The age of the code that is shown, in words; null if none is shown. */
  codeAge: string | null;
}

interface Words {
  title: string;
  heading: string;
  visitor: string;
  where: string;
  from: string;
  until: string;
  show: string;
  code: string;
  sentence: (state: State, circumstances: Circumstances) => string;
}

const ENGLISH: Words = {
  title: "Visitor's pass",
  heading: "Your visit",
  visitor: "Visitor",
  where: "Where",
  from: "From",
  until: "Until",
  show: "Show my pass",
  code: "The code of your pass",
  sentence: (state, { begins, codeAge }) => {
    switch (state) {
      case "loading":
        return "One moment, please.";
      case "invited":
        return "Tap the button to get your pass, which only this phone can show from then on.";
      case "early":
        return begins === null ? "Your pass has not begun yet." : `Your pass begins on ${begins}.`;
      case "open":
        return "Hold this code in front of the scanner at the door.";
      case "ended":
        return "Your visit has ended.";
      case "expired":
        return "This link has expired; please ask for a new one.";
      case "revoked":
        return "This pass has been withdrawn; please ask at reception.";
      case "suspended":
        return "This pass is on hold; please ask at reception.";
      case "taken":
        return "This pass is on another phone or in another browser; please ask at reception for a new one.";
      case "unsuitable":
        return "This browser cannot keep a pass; please open the link in another one, and not in a private window.";
      case "offline":
        return codeAge === null
          ? "There is no network; this page tries again by itself."
          : `There is no network; this is your last code, ${codeAge} old, and a door may refuse it.`;
      case "busy":
        return codeAge === null
          ? "The service does not respond as it should; this page tries again by itself."
          : `There is no new code yet; this is your last one, ${codeAge} old, and a door may refuse it.`;
      case "unknown":
        return "This link leads to no pass; please ask for a new one.";
      case "app":
        return "This invitation works only in the app; please ask at reception.";
    }
  },
};

const GERMAN: Words = {
  title: "Besucherausweis",
  heading: "Ihr Besuch",
  visitor: "Besucher",
  where: "Wo",
  from: "Von",
  until: "Bis",
  show: "Meinen Ausweis zeigen",
  code: "Der Code Ihres Ausweises",
  sentence: (state, { begins, codeAge }) => {
    switch (state) {
      case "loading":
        return "Einen Moment, bitte.";
      case "invited":
        return "Tippen Sie auf den Knopf; von da an kann nur dieses Telefon den Ausweis zeigen.";
      case "early":
        return begins === null ? "Ihr Ausweis gilt noch nicht." : `Ihr Ausweis gilt ab ${begins}.`;
      case "open":
        return "Halten Sie diesen Code vor den Scanner an der Tür.";
      case "ended":
        return "Ihr Besuch ist zu Ende.";
      case "expired":
        return "Dieser Link ist abgelaufen; bitte fragen Sie nach einem neuen.";
      case "revoked":
        return "Dieser Ausweis wurde zurückgezogen; bitte fragen Sie am Empfang.";
      case "suspended":
        return "Dieser Ausweis ist gesperrt; bitte fragen Sie am Empfang.";
      case "taken":
        return "Dieser Ausweis ist auf einem anderen Telefon oder in einem anderen Browser; bitte fragen Sie am Empfang nach einem neuen.";
      case "unsuitable":
        return "Dieser Browser kann keinen Ausweis aufbewahren; bitte öffnen Sie den Link in einem anderen und nicht in einem privaten Fenster.";
      case "offline":
        return codeAge === null
          ? "Es gibt kein Netz; diese Seite versucht es von selbst wieder."
          : `Es gibt kein Netz; das ist Ihr letzter Code, ${codeAge} alt, und eine Tür kann ihn ablehnen.`;
      case "busy":
        return codeAge === null
          ? "Der Dienst antwortet nicht richtig; diese Seite versucht es von selbst wieder."
          : `Es gibt noch keinen neuen Code; das ist Ihr letzter, ${codeAge} alt, und eine Tür kann ihn ablehnen.`;
      case "unknown":
        return "Dieser Link führt zu keinem Ausweis; bitte fragen Sie nach einem neuen.";
      case "app":
        return "Diese Einladung gilt nur in der App; bitte fragen Sie am Empfang.";
    }
  },
};

/** Uses the first of the browser's languages that the page has, else English. */
export const isGerman =
  navigator.languages.map((tag) => tag.slice(0, 2).toLowerCase()).find((tag) => tag === "de" || tag === "en") === "de";

export const words: Words = isGerman ? GERMAN : ENGLISH;

/** The browser's locale in that language, with its region. */
const locale = navigator.languages.find((tag) => tag.toLowerCase().startsWith(isGerman ? "de" : "en")) ?? "en-GB";

const parts: Intl.DateTimeFormatOptions = {
  ...{ weekday: "long", day: "numeric", month: "long" },
  ...{ hour: "numeric", minute: "2-digit", timeZoneName: "short" },
};
const timesOfThisYear = new Intl.DateTimeFormat(locale, parts);
const times = new Intl.DateTimeFormat(locale, { ...parts, year: "numeric" });

/** A time in the phone's zone, which it names, with its year unless that is this year. @param at ISO 8601 */
export function timeWords(at: string): string {
  const time = new Date(at);
  return (time.getFullYear() === new Date().getFullYear() ? timesOfThisYear : times).format(time);
}

/** `45 seconds`, `3 minutes`, `2 hours`. */
export function ageWords(seconds: number): string {
  const [count, unit] =
    seconds < 120
      ? [Math.round(seconds), "second"]
      : seconds < 7200
        ? [Math.round(seconds / 60), "minute"]
        : [Math.round(seconds / 3600), "hour"];
  return new Intl.NumberFormat(locale, { style: "unit", unit, unitDisplay: "long" }).format(count);
}
