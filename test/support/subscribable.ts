/** The events of contract section 18, as it names them: not taken from the code that they judge. */
export const SUBSCRIBABLE = [
  "badge:created",
  "badge:suspended",
  "badge:resumed",
  "badge:revoked",
  "badge:expired",
  "badge:replaced",
  "invitation:revoked",
  "invitation:expired",
];
