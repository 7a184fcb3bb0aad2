/* SPDX-License-Identifier: MIT */
/* Asking the scheduler to let a thread run soon after it wakes up. */
#ifndef FRESHET_PROMPT_H
#define FRESHET_PROMPT_H

/*
 * For the calling thread alone; threads and processes that it starts later are ordinary. What cannot be
 * had is left out: it is a wish. A policy or a nice value that the administrator gave stays.
 */
void prompt_thread(void);

#endif
