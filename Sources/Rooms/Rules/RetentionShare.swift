/// Limits how much may be deleted for its age per hour, so that a clock that is wrong for a while destroys only a part. A value; on a steady clock.
///
/// The limit is a tenth of the items held, or twice the number that expires in an hour, whichever is more. So a retention of two hours or less is
/// never delayed.
package struct RetentionShare: Sendable {
    private static let hourMs: Int64 = 3_600_000

    /// Least allowance per hour.
    private let least: Int
    private var hourFrom: Int64?
    private var spent = 0

    package init(least: Int = 1) { self.least = least }

    /// How many of `held`, kept for `retentionMs` each, may be deleted now.
    package mutating func allowance(held: Int, retentionMs: Int64, steadyMs: Int64) -> Int {
        if let from = self.hourFrom, steadyMs >= from, steadyMs - from < Self.hourMs {
            // The current hour continues.
        } else {
            self.hourFrom = steadyMs
            self.spent = 0
        }
        let (double, isLarge) = Int64(max(0, held) + self.spent).multipliedReportingOverflow(by: 2 * Self.hourMs)
        let all = max(0, held) + self.spent
        let byAge = isLarge ? all : Int(min(Int64(all), double / max(1, retentionMs)))
        return max(0, max(self.least, (all + 9) / 10, byAge) - self.spent)
    }

    package mutating func spend(_ count: Int) { self.spent += count }
}
