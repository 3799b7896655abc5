// The time shown: it plays, stops, steps and jumps.

/** Simulated seconds per second. */
export const SPEEDS = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10];

export class Player {
  time = 0;
  speed = 0.03;
  isPlaying = false;
  private last = 0;

  /** `limit` returns up to where there is something to show, `advance` makes more of it while it plays. */
  constructor(
    private readonly limit: () => number,
    private readonly changed: () => void,
    private readonly advance: (time: number) => void,
  ) {}

  toggle(): void {
    if (!this.isPlaying && this.time >= this.limit()) this.time = 0;
    this.isPlaying = !this.isPlaying;
    this.last = performance.now();
    if (this.isPlaying) requestAnimationFrame(this.frame);
    this.changed();
  }

  seek(time: number): void {
    this.time = Math.max(0, Math.min(time, this.limit()));
    this.changed();
  }

  /** Stops at a time. */
  halt(time = this.time): void {
    this.isPlaying = false;
    this.seek(time);
  }

  /** Plays at the next faster or slower speed. */
  changeSpeed(by: 1 | -1): void {
    const at = SPEEDS.indexOf(this.speed) + by;
    this.setSpeed(SPEEDS[Math.max(0, Math.min(SPEEDS.length - 1, at))]);
  }

  setSpeed(speed: number): void {
    this.speed = speed;
    this.changed();
  }

  private readonly frame = (now: number): void => {
    if (!this.isPlaying) return;
    // A page in the background gets no frames: it does not jump when it is seen again.
    const passed = Math.min(0.1, (now - this.last) / 1000);
    this.last = now;
    const next = this.time + Math.max(0, passed) * this.speed;
    this.advance(next);
    this.time = Math.min(next, this.limit());
    this.changed();
    requestAnimationFrame(this.frame);
  };
}
