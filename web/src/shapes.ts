// Points and small shapes of the pictures.

export interface Point {
  x: number;
  y: number;
}

/** The point after a share of the way. */
export function between(from: Point, to: Point, share: number): Point {
  return { x: from.x + (to.x - from.x) * share, y: from.y + (to.y - from.y) * share };
}

export function circle(context: CanvasRenderingContext2D, { x, y }: Point, radius: number): void {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
}

/** A cross in the colour of the context, whose arms are this long in each direction. */
export function cross(context: CanvasRenderingContext2D, { x, y }: Point, arm: number): void {
  context.beginPath();
  context.moveTo(x - arm, y - arm);
  context.lineTo(x + arm, y + arm);
  context.moveTo(x + arm, y - arm);
  context.lineTo(x - arm, y + arm);
  context.stroke();
}
