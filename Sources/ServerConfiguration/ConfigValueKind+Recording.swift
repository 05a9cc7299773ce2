import Rooms
import Support

/// Values of the recording settings.
extension ConfigValueKind<[String]> {
    /// Names of apps, or * for all.
    package static var apps: Self {
        Self(
            expected: "a list of apps, such as [live] or [*]", isList: true,
            read: { (values: [String]) throws(ValueProblem) in
                guard values.count <= 64 else { throw ValueProblem("has \(values.count) apps; expected 64 at most") }
                for value in values where !(1...255).contains(value.utf8.count) || value.contains("/") {
                    throw ValueProblem("\"\(value)\" is not an app; expected a name such as live, or * for all")
                }
                for value in values { if let problem = NameForm.problem(value) { throw ValueProblem("\"\(value)\" \(problem)") } }
                return values
            },
            write: { $0 })
    }
}

extension ConfigValueKind<ServerConfig.Recording.Sync> {
    package static var sync: Self {
        let range: ClosedRange<Int64> = 100...3_600_000
        return Self("never, fragment, or a duration such as 5s") { (text: String) throws(ValueProblem) in
            switch text.lowercased() {
            case "never": return .never
            case "fragment": return .fragment
            default:
                guard let ms = ConfigUnits.milliseconds(text), range.contains(ms) else {
                    throw ValueProblem("\"\(text)\" is neither never, nor fragment, nor a duration from 100ms to 1h")
                }
                return .every(ms: ms)
            }
        } write: {
            switch $0 {
            case .never: "never"
            case .fragment: "fragment"
            case .every(let ms): ConfigUnits.duration(milliseconds: ms)
            }
        }
    }
}
