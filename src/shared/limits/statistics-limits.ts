/** Statistics (contract section 19). */

/** Number of newest badges whose metadata is counted. */
export const STATISTICS_SAMPLED_BADGES = 20_000;
/**
 * Maximum of counted events per state. It is a little below 10,000, so that all counts together read at most 60,000
 * rows (contract section 19).
 */
export const STATISTICS_EVENTS_COUNTED = 9_975;
/** Maximum of counted freed numbers within the reuse delay. */
export const STATISTICS_COOLING_DOWN_COUNTED = 10_000;
export const STATISTICS_DAYS = 90;
/** Number of values of a metadata field that are listed, most frequent first. */
export const STATISTICS_VALUES_SHOWN = 15;
