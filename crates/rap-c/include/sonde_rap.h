/* Range-adaptive profiles: bounded-memory summaries of any stream of numbers, with a proven error.
 *
 * Generated from the source of sonde-rap-c by its test `header`; do not edit. To renew it:
 * SONDE_RENEW_HEADER=1 cargo test -p sonde-rap-c --test header
 *
 * Every call returns a status; a failed call changes nothing, and sonde_rap_last_error says what was wrong. All calls may
 * be made from any thread. Link with -lsonde_rap_c; the static library also needs -lpthread -ldl -lm.
 */

#ifndef SONDE_RAP_H
#define SONDE_RAP_H

#include <stddef.h>
#include <stdint.h>

/*
 Keys of 32 bits.
 */
#define SONDE_RAP_KEY_U32 0

/*
 Keys of 64 bits.
 */
#define SONDE_RAP_KEY_U64 1

/*
 Keys of 128 bits: `part[0]` holds the low, `part[1]` the high half.
 */
#define SONDE_RAP_KEY_U128 2

/*
 Pairs of 32-bit numbers, one in each part.
 */
#define SONDE_RAP_KEY_U32X2 3

/*
 Pairs of 64-bit numbers.
 */
#define SONDE_RAP_KEY_U64X2 4

/*
 Triples of 32-bit numbers.
 */
#define SONDE_RAP_KEY_U32X3 5

/*
 Triples of 64-bit numbers.
 */
#define SONDE_RAP_KEY_U64X3 6

/*
 `buffer` of a configuration: let the library choose.
 */
#define SONDE_RAP_BUFFER_AUTO UINT64_MAX

/*
 `buffer` of a configuration: no merging-event buffer.
 */
#define SONDE_RAP_BUFFER_NONE 0

/*
 `buffer` of a configuration: combine equal events without limit until a query.
 */
#define SONDE_RAP_BUFFER_UNLIMITED (UINT64_MAX - 1)

/*
 What a call came to. Zero is success.
 */
typedef enum {
  /*
   Done.
   */
  SONDE_RAP_STATUS_OK = 0,
  /*
   A pointer that must not be NULL is NULL, or is not aligned for its type.
   */
  SONDE_RAP_STATUS_BAD_POINTER = 1,
  /*
   The handle was never given out, or was freed already.
   */
  SONDE_RAP_STATUS_BAD_HANDLE = 2,
  /*
   A configuration value is out of its range.
   */
  SONDE_RAP_STATUS_BAD_CONFIG = 3,
  /*
   The call does not fit the tree's key type, or the profile number is not below the number given to `rap_init`.
   */
  SONDE_RAP_STATUS_WRONG_TYPE = 4,
  /*
   `rap_init` was not called, or `rap_release` was called since.
   */
  SONDE_RAP_STATUS_NOT_INITIALIZED = 5,
  /*
   The caller's array is too small; the needed length was stored.
   */
  SONDE_RAP_STATUS_TOO_SMALL = 6,
  /*
   Serialized bytes that are not a tree of this version and key type, or are damaged.
   */
  SONDE_RAP_STATUS_BAD_DATA = 7,
  /*
   An argument is out of its range: a threshold that is no share, a length or count too large.
   */
  SONDE_RAP_STATUS_BAD_ARGUMENT = 8,
  /*
   A file could not be written.
   */
  SONDE_RAP_STATUS_IO = 9,
  /*
   A bug in this library; the tree that was being changed is no longer usable.
   */
  SONDE_RAP_STATUS_INTERNAL = 10,
} sonde_rap_status;

/*
 How to build a tree; fill it with `sonde_rap_config_default` first.
 */
typedef struct {
  /*
   One of `SONDE_RAP_KEY_*`.
   */
  uint32_t key_type;
  /*
   Ranges that a range is split into: 2, 4, 8 or 16.
   */
  uint32_t branching;
  /*
   Largest error of a range's estimate, as a share of all events: above 0, below 1.
   */
  double eps;
  /*
   Growth of the interval between two batches of merges, above 1.
   */
  double merge_ratio;
  /*
   Events before the first batch of merges.
   */
  uint64_t first_merge;
  /*
   Hard limit of memory in bytes; 0 for none. The error that results is `eps_effective` of `sonde_rap_get_info`.
   */
  uint64_t max_memory;
  /*
   Bytes of the merging-event buffer, or one of `SONDE_RAP_BUFFER_*`.
   */
  uint64_t buffer;
} sonde_rap_config;

/*
 A tree, by number; 0 is never one. Numbers are not given out twice.
 */
typedef uint64_t sonde_rap_handle;

/*
 A key: only as many parts as the key type has are read; of a 32-bit part the upper half must be 0.
 */
typedef struct {
  /*
   The number, its halves, or its dimensions.
   */
  uint64_t part[3];
} sonde_rap_key;

/*
 Where a tree stands.
 */
typedef struct {
  /*
   Weight of all events added.
   */
  uint64_t events;
  /*
   Nodes now.
   */
  uint64_t nodes;
  /*
   Most nodes at any time.
   */
  uint64_t nodes_max;
  /*
   Memory held now, in bytes.
   */
  uint64_t memory_bytes;
  /*
   The error bound that holds now, as a share of `events`; above `eps` only when `max_memory` forced it.
   */
  double eps_effective;
} sonde_rap_info;

/*
 A hot range: its own weight with that of its sub-ranges that are not hot reaches the threshold.
 */
typedef struct {
  /*
   Smallest key of the range, in each dimension.
   */
  sonde_rap_key lo;
  /*
   Largest key of the range, in each dimension, inclusive.
   */
  sonde_rap_key hi;
  /*
   Weight of the range without its hot sub-ranges.
   */
  uint64_t own;
  /*
   Weight of the range with its hot sub-ranges.
   */
  uint64_t total;
  /*
   The true weight of the range is at least this,
   */
  uint64_t lower;
  /*
   and at most this.
   */
  uint64_t upper;
  /*
   Number of hot ranges around this one.
   */
  uint32_t depth;
  /*
   Index of the closest of them in the same array, -1 if there is none.
   */
  int64_t parent;
} sonde_rap_hot_range;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 Fills a configuration with the defaults: 64-bit keys, `b` = 4, `eps` = 1 %, `q` = 2, no memory limit.

 # Safety
 `config` must be NULL or point to room for a configuration.
 */
sonde_rap_status sonde_rap_config_default(sonde_rap_config *config);

/*
 Makes an empty tree and stores its handle. To be freed with `sonde_rap_free`.

 # Safety
 `config` must be NULL or point to a configuration, `handle` must be NULL or point to room for a handle.
 */
sonde_rap_status sonde_rap_new(const sonde_rap_config *config,
                               sonde_rap_handle *handle);

/*
 Frees a tree. A second time it is `BadHandle`.
 */
sonde_rap_status sonde_rap_free(sonde_rap_handle handle);

/*
 Counts one event, for trees of 32-bit or 64-bit numbers.
 */
sonde_rap_status sonde_rap_add(sonde_rap_handle handle,
                               uint64_t number);

/*
 Counts `weight` events with the same number, for trees of 32-bit or 64-bit numbers.
 */
sonde_rap_status sonde_rap_add_weighted(sonde_rap_handle handle,
                                        uint64_t number,
                                        uint64_t weight);

/*
 Counts `weight` events with the same key, for trees of any key type.

 # Safety
 `key` must be NULL or point to a key.
 */
sonde_rap_status sonde_rap_add_key(sonde_rap_handle handle,
                                   const sonde_rap_key *key,
                                   uint64_t weight);

/*
 Counts one event for each number, for trees of 64-bit keys: the fast way.

 # Safety
 `numbers` must be NULL or point to `length` numbers.
 */
sonde_rap_status sonde_rap_add_slice(sonde_rap_handle handle,
                                     const uint64_t *numbers,
                                     uintptr_t length);

/*
 Counts one event for each number, for trees of 32-bit keys: the fast way.

 # Safety
 `numbers` must be NULL or point to `length` numbers.
 */
sonde_rap_status sonde_rap_add_slice_u32(sonde_rap_handle handle,
                                         const uint32_t *numbers,
                                         uintptr_t length);

/*
 Tells where a tree stands; buffered events are counted in first.

 # Safety
 `info` must be NULL or point to room for it.
 */
sonde_rap_status sonde_rap_get_info(sonde_rap_handle handle,
                                    sonde_rap_info *info);

/*
 Stores the hot ranges at `threshold` (a share, such as 0.1), outer ranges before inner, in the caller's array.

 # Safety
 `ranges` must be NULL or point to room for `capacity` ranges, `count` must be NULL or point to a `size_t`.
 */
sonde_rap_status sonde_rap_hot(sonde_rap_handle handle,
                               double threshold,
                               sonde_rap_hot_range *ranges,
                               uintptr_t capacity,
                               uintptr_t *count);

/*
 Stores the least and the most events that keys from `lo` to `hi` (both included, in each dimension) can have.

 # Safety
 `lo` and `hi` must be NULL or point to keys, `lower` and `upper` must be NULL or point to room for a number.
 */
sonde_rap_status sonde_rap_bounds(sonde_rap_handle handle,
                                  const sonde_rap_key *lo,
                                  const sonde_rap_key *hi,
                                  uint64_t *lower,
                                  uint64_t *upper);

/*
 Stores the tree as bytes (with version and checksum) in the caller's array.

 # Safety
 `bytes` must be NULL or point to room for `capacity` bytes, `length` must be NULL or point to a `size_t`.
 */
sonde_rap_status sonde_rap_serialize(sonde_rap_handle handle,
                                     uint8_t *bytes,
                                     uintptr_t capacity,
                                     uintptr_t *length);

/*
 Makes a tree of a key type from serialized bytes, which need not be trusted, and stores its handle.

 # Safety
 `bytes` must be NULL or point to `length` bytes, `handle` must be NULL or point to room for a handle.
 */
sonde_rap_status sonde_rap_deserialize(uint32_t key_type,
                                       const uint8_t *bytes,
                                       uintptr_t length,
                                       sonde_rap_handle *handle);

/*
 Adds a tree that was built apart, given as serialized bytes of the same key type. Errors add up: `eps * (n1 + n2)`.

 # Safety
 `bytes` must be NULL or point to `length` bytes.
 */
sonde_rap_status sonde_rap_merge(sonde_rap_handle handle,
                                 const uint8_t *bytes,
                                 uintptr_t length);

/*
 Stores the tree as text (not ended by NUL) in the caller's array.

 # Safety
 `text` must be NULL or point to room for `capacity` characters, `length` must be NULL or point to a `size_t`.
 */
sonde_rap_status sonde_rap_dump(sonde_rap_handle handle,
                                char *text,
                                uintptr_t capacity,
                                uintptr_t *length);

/*
 Starts `number_of_profiles` empty profiles of 64-bit identifiers with the default parameters, numbered from 0. If there are
 profiles already, these are freed and replaced.
 */
sonde_rap_status rap_init(unsigned int number_of_profiles);

/*
 Counts `count` events with the identifier `profile_event_identifier` in the profile `profile_type`.
 */
sonde_rap_status rap_add_points(uint64_t profile_event_identifier,
                                uint64_t count,
                                unsigned int profile_type);

/*
 Counts buffered events in and writes all profiles as text to the file `path`: "-" is the standard output, NULL writes
 nothing. Each profile begins with a line `# profile N`. Counting can go on afterwards.

 # Safety
 `path` must be NULL or point to a string that ends with NUL.
 */
sonde_rap_status rap_finalize(const char *path);

/*
 Frees all profiles; `rap_init` can start new ones.
 */
sonde_rap_status rap_release(void);

/*
 Stores the handle of a profile, for the `sonde_rap_*` queries. It is valid until `rap_release` or the next `rap_init`.

 # Safety
 `handle` must be NULL or point to room for a handle.
 */
sonde_rap_status rap_profile(unsigned int profile_type,
                             sonde_rap_handle *handle);

/*
 The sentence of the last failed call on this thread; empty if none failed. Valid until the next failing call on this
 thread; never NULL.
 */
const char *sonde_rap_last_error(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* SONDE_RAP_H */
