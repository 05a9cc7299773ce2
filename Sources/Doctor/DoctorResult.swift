import CommandSupport
import Support

/// The outcome of one check. A plain value.
struct DoctorResult: Sendable, Equatable {
    enum Status: String, Sendable, CaseIterable {
        case pass, warn, fail
        /// Not checked; `measured` says why.
        case skip
    }

    let name: String
    let status: Status
    /// The measurement or observation, in a few words.
    let measured: String
    /// Advice for the user, if any.
    let advice: String?

    static func pass(_ name: String, _ measured: String) -> DoctorResult {
        DoctorResult(name: name, status: .pass, measured: measured, advice: nil)
    }
    static func warn(_ name: String, _ measured: String, _ advice: String) -> DoctorResult {
        DoctorResult(name: name, status: .warn, measured: measured, advice: advice)
    }
    static func fail(_ name: String, _ measured: String, _ advice: String) -> DoctorResult {
        DoctorResult(name: name, status: .fail, measured: measured, advice: advice)
    }
    static func skip(_ name: String, _ why: String, _ advice: String? = nil) -> DoctorResult {
        DoctorResult(name: name, status: .skip, measured: why, advice: advice)
    }

    var json: JSONValue {
        [
            "name": .string(self.name), "status": .string(self.status.rawValue), "measured": .string(self.measured),
            "advice": self.advice.map(JSONValue.string) ?? .null,
        ]
    }
}

/// A check of one or more facts. A value; its body returns a result for each.
struct DoctorCheck: Sendable {
    /// Shown while it runs.
    let name: String
    let run: @Sendable () async -> [DoctorResult]

    /// A check that reads files or calls the system: on a thread that may block.
    static func blocking(_ name: String, _ body: @escaping @Sendable () -> [DoctorResult]) -> DoctorCheck {
        DoctorCheck(name: name) { await BlockingThread.run(body) }
    }
}
