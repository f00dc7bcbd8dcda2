/** Chooses what a list shows. */
export function Filter<Choice extends string>(props: {
  /** In the order in which they are offered. */
  words: Readonly<Record<Choice, string>>;
  value: Choice;
  onChange: (choice: Choice) => void;
}) {
  const { words, value, onChange } = props;
  const choices = Object.keys(words).filter((choice): choice is Choice => Object.hasOwn(words, choice));
  return (
    <label class="filter">
      Show
      <select
        value={value}
        onChange={(event) => {
          const chosen = choices.find((choice) => choice === event.currentTarget.value);
          if (chosen !== undefined) onChange(chosen);
        }}
      >
        {choices.map((choice) => (
          <option key={choice} value={choice}>
            {words[choice]}
          </option>
        ))}
      </select>
    </label>
  );
}
