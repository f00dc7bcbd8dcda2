import { hrefOf } from "./route.ts";

/** A character that looks like another one or is invisible, and what to say about it. */
interface Oddity {
  text: string;
  shown: string;
  meaning: string;
}

/** Scripts besides Latin with letters that look like Latin ones (Unicode TR 39). */
const LOOKALIKE = /[\p{Script=Cyrillic}\p{Script=Greek}\p{Script=Armenian}\p{Script=Cherokee}]/u;
const LATIN = /\p{Script=Latin}/u;

/**
 * Splits a text into plain parts and odd characters: blanks at its ends or next to each other, spaces other than U+0020,
 * invisible characters, look-alikes among Latin letters, and characters that a Unicode normalization form changes.
 */
function markOddities(text: string): (string | Oddity)[] {
  const isMixed = LATIN.test(text) && LOOKALIKE.test(text);
  const characters = [...text];
  const parts: (string | Oddity)[] = [];
  for (const [place, character] of characters.entries()) {
    const before = characters[place - 1] ?? " ";
    const odd = oddityOf(character, {
      isAtEdge: place === 0 || place === characters.length - 1 || before === " ",
      isAfterLatin: LATIN.test(before),
      isMixed,
    });
    const last = parts.at(-1);
    if (odd !== null) parts.push(odd);
    else if (typeof last === "string") parts[parts.length - 1] = last + character;
    else parts.push(character);
  }
  return parts;
}

function oddityOf(
  character: string,
  { isAtEdge, isAfterLatin, isMixed }: { isAtEdge: boolean; isAfterLatin: boolean; isMixed: boolean },
): Oddity | null {
  const code = `U+${character.codePointAt(0)?.toString(16).toUpperCase().padStart(4, "0")}`;
  const odd = (shown: string, meaning: string) => ({ text: character, shown, meaning: `${meaning}, ${code}` });
  if (character === " ") return isAtEdge ? odd("␣", "a blank") : null;
  if (/\p{Zs}/u.test(character)) return odd("␣", "an unusual blank");
  if (/[\p{Cf}\p{Default_Ignorable_Code_Point}]/u.test(character)) return odd("◌", "an invisible character");
  // Thai, Hindi and other scripts write vowels as marks of their own.
  if (/\p{Mn}/u.test(character) && (isAfterLatin || /\p{Script=Inherited}/u.test(character)))
    return odd(`◌${character}`, "a separate accent");
  if (isMixed && LOOKALIKE.test(character)) return odd(character, "a letter that looks like a Latin one");
  if (
    character !== character.normalize("NFC") ||
    (/\P{ASCII}/u.test(character) && character !== character.normalize("NFKC"))
  ) {
    return odd(character, "a character that looks like another");
  }
  return null;
}

/** Lets an address break after its `@`. */
const breakable = (text: string) =>
  text.split("@").flatMap((part, place) => (place === 0 ? [part] : ["@", <wbr key={place} />, part]));

/** A user ID or a name. Odd characters are marked, and described to screen readers. */
export function Plainly({ text }: { text: string }) {
  const parts = markOddities(text);
  if (parts.every((part) => typeof part === "string")) return <span class="user-id">{breakable(text)}</span>;
  const meanings = [...new Set(parts.flatMap((part) => (typeof part === "string" ? [] : [part.meaning])))];
  return (
    <span class="user-id">
      {parts.map((part, place) =>
        typeof part === "string" ? (
          part
        ) : (
          <mark key={place} class="odd" title={part.meaning} aria-hidden="true">
            {part.shown}
          </mark>
        ),
      )}
      <span class="unseen"> (contains {meanings.join("; ")})</span>
    </span>
  );
}

/** A person's name, if there is one, and user ID, with a link to the person's page. */
export function Person({ userId, name }: { userId: string; name?: string | undefined }) {
  return (
    <>
      <a href={hrefOf("person", { user: userId })}>
        <Plainly text={name ?? userId} />
      </a>
      {name !== undefined && (
        <span class="second">
          <Plainly text={userId} />
        </span>
      )}
    </>
  );
}
