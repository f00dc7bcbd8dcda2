/** Whose rows the planted ones are (planter.ts): no application of a seed. */
export const STRANGER = "app_stranger";
