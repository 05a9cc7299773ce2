import ArgumentParser

/// An option with the API's name for its value. The option's former names still work.
struct OptionName {
    let name: String
    let formerNames: [String]

    private init(_ name: String, formerly formerNames: String...) {
        self.name = name
        self.formerNames = formerNames
    }

    static let roomID = OptionName("room-id", formerly: "room", "id")
    static let deviceUID = OptionName("device-uid", formerly: "device")
    static let userID = OptionName("user-id", formerly: "user")
    static let forbiddenUntil = OptionName("forbidden-until", formerly: "until")

    private static let all = [Self.roomID, Self.deviceUID, Self.userID, Self.forbiddenUntil]

    /// Rejects an option given twice under any of its names, as the API does. The parser would silently use the last one.
    static func check(_ arguments: some Sequence<String>) throws {
        let words = arguments.prefix { $0 != "--" }.map { $0.prefix { $0 != "=" } }
        for option in self.all {
            let names = Set(([option.name] + option.formerNames).map { "--\($0)" })
            let given = words.filter { names.contains(String($0)) }
            guard given.count > 1 else { continue }
            throw ValidationError(
                given[0] == given[1]
                    ? "\(given[0]) is given twice; expected once." : "\(given[1]) is the same as \(given[0]); expected one of them.")
        }
    }
}

extension NameSpecification {
    /// The option's name with the given former ones.
    static func option(_ option: OptionName, formerly names: String...) -> NameSpecification {
        NameSpecification(([option.name] + names).map { .customLong($0) })
    }
}
