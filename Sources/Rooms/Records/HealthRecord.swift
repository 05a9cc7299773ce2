/// A change of a stream's verdict, for its event. A value; the words are the judge's.
package struct HealthRecord: Sendable, Equatable {
    package struct Reason: Sendable, Equatable {
        package var code: String
        /// The verdict that this reason alone would give.
        package var severity: String
        /// Measured and expected, in `unit`.
        package var value: Double?
        package var expected: Double?
        package var unit: String?
        package var message: String

        package init(code: String, severity: String, value: Double? = nil, expected: Double? = nil, unit: String? = nil, message: String) {
            self.code = code
            self.severity = severity
            self.value = value
            self.expected = expected
            self.unit = unit
            self.message = message
        }
    }

    package var verdict: String
    /// The verdict of the last such event, "good" before the first.
    package var former: String
    /// The worst first.
    package var reasons: [Reason]

    package init(verdict: String, former: String, reasons: [Reason]) {
        self.verdict = verdict
        self.former = former
        self.reasons = reasons
    }
}
