import HTTPAPI
import HTTPServer
import Rooms
import Statistics
import Support

/// Inputs of the calls for figures over time.
enum StatsInputs {
    static let from = Input("from", .instant, "The beginning; an hour before the end if not given.")
    static let to = Input("to", .instant, "The end; now if not given.")
    static let step = Input(
        "step", InputType<Int64>.step, "Seconds of a step, a multiple of 60; a multiple of 600 for times that are kept by ten minutes.")
    static let sort = Input(
        "sort", .choice() as InputType<StatisticsStore.Order>, "The figure by which the list is sorted.", fallback: .bytesOut)
    static let after = Input("after", .whole(0...1_000_000), "The `next` of the previous page.", fallback: 0)
    static let limit = Input("limit", .whole(1...1_000), "The maximum number of entries.", fallback: 100)

    static let stream = Input(
        "stream", .soughtName(length: 1...2 * RoomLimits.streamNameLength + 1), "Only those of this stream, app/name.")
    static let room = Input("roomId", .roomID, "Only those of this room.")
    static let user = Input("userId", .soughtName(length: 1...256), "Only those of this user.")
    static let playReason = Input("reason", .choice() as InputType<CloseReason>, "Only plays that ended for this reason.")
    static let pushReason = Input("reason", .choice() as InputType<PushEnd>, "Only pushes that ended for this reason.")
    static let since = Input("from", .instant, "Only those that ended at this time or later.")
    static let until = Input("to", .instant, "Only those that ended before this time.")
    static let before = Input(
        "before", .whole(1...Int64.max), "The `next` of the previous page, or the last `playId` or `pushId` of a page of CSV.")

    static let window: [any RequestInput] = [Self.from, Self.to, Self.step]

    /// Most steps of an answer: a little more than one day of minutes.
    static let mostSteps: Int64 = 1_500
    private static let usualSteps: [Int64] = [60_000, 600_000, 3_600_000, 86_400_000]
    /// Figures older than a day are kept in steps of ten minutes.
    private static let coarseMs: Int64 = 600_000
}

extension InputType<Int64> {
    /// Whole minutes, in seconds.
    fileprivate static var step: InputType {
        .whole(60...2_678_400).map { (seconds: Int64) throws(BrokenRule) in
            guard seconds % 60 == 0 else { throw BrokenRule("expected a multiple of 60") }
            return seconds
        }
    }
}

extension StatsInputs {
    /// The requested time range. `coarseUntilMs`: before this time, figures exist only in steps of ten minutes.
    static func window(_ call: APICall, nowMs: Int64, coarseUntilMs: Int64?) throws -> StatisticsWindow {
        let (fromMs, toMs) = try Self.times(call, nowMs: nowMs)
        let isCoarse = coarseUntilMs.map { fromMs < $0 } ?? false
        guard let seconds = call[Self.step] else {
            let least = isCoarse ? Self.coarseMs : 0
            // 31 days by the hour; any longer time by the day.
            let step = Self.usualSteps.first { $0 >= least && (toMs - fromMs) / $0 < Self.mostSteps } ?? Self.usualSteps[3]
            try Self.check(StatisticsWindow(fromMs: fromMs, toMs: toMs, stepMs: step))
            return StatisticsWindow(fromMs: fromMs, toMs: toMs, stepMs: step)
        }
        let window = StatisticsWindow(fromMs: fromMs, toMs: toMs, stepMs: seconds * 1_000)
        if isCoarse, let coarseUntilMs, window.stepMs % Self.coarseMs != 0 {
            let rule = "expected a multiple of 600: times before \(Instant.text(coarseUntilMs)) are kept by ten minutes"
            throw APIError(FieldError(Self.step.name, "\(seconds)", rule))
        }
        try Self.check(window)
        return window
    }

    /// The requested time range as one step, in whole minutes or ten minutes.
    static func wholeWindow(_ call: APICall, nowMs: Int64, coarseUntilMs: Int64?) throws -> StatisticsWindow {
        let (fromMs, toMs) = try Self.times(call, nowMs: nowMs)
        let isCoarse = coarseUntilMs.map { fromMs < $0 } ?? false
        return StatisticsWindow(fromMs: fromMs, toMs: toMs, stepMs: isCoarse ? Self.coarseMs : 60_000)
    }

    private static func times(_ call: APICall, nowMs: Int64) throws -> (from: Int64, to: Int64) {
        let toMs = call[Self.to] ?? nowMs
        let fromMs = call[Self.from] ?? max(0, toMs - 3_600_000)
        guard fromMs < toMs else {
            throw APIError(FieldError(Self.from.name, Instant.text(fromMs), "expected a time before the end, \(Instant.text(toMs))"))
        }
        return (fromMs, toMs)
    }

    private static func check(_ window: StatisticsWindow) throws {
        guard (window.toMs - window.fromMs) / window.stepMs > Self.mostSteps else { return }
        throw APIError(
            FieldError(
                Self.step.name, "\(window.stepMs / 1_000)", "expected a longer step or a shorter time: at most \(Self.mostSteps) steps"))
    }
}
