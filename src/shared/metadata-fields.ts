/** The fields of `metadata`, all optional text (contract section 7). */
export const METADATA_FIELDS = ["deviceModel", "os", "osVersion", "sdkVersion"] as const;

export type MetadataField = (typeof METADATA_FIELDS)[number];
