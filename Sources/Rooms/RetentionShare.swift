/// How much of what is kept may be deleted for its age within an hour, so that a clock that is wrong for a while destroys a part of it and
/// not all. A value; its clock is a steady one.
///
/// A tenth of what is held, or twice what the age's own limit takes in an hour when that is more: what is kept for two hours or less is
/// not held back.
package struct RetentionShare: Sendable {
    private static let hourMs: Int64 = 3_600_000

    /// At least so many an hour.
    private let least: Int
    private var hourFrom: Int64?
    private var spent = 0

    package init(least: Int = 1) { self.least = least }

    /// How many may be deleted now, of `held` that are kept for `retentionMs` each.
    package mutating func allowance(held: Int, retentionMs: Int64, steadyMs: Int64) -> Int {
        if let from = self.hourFrom, steadyMs >= from, steadyMs - from < Self.hourMs {
            // The hour that has begun goes on.
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
