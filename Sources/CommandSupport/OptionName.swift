package import ArgumentParser

/// Options with the API's name for their value.
package enum OptionName: String, CaseIterable {
    case roomID = "room-id"
    case deviceUID = "device-uid"
    case userID = "user-id"
    case forbiddenUntil = "forbidden-until"

    /// Rejects one of them given twice, as the API does. The parser would silently use the last one.
    package static func check(_ arguments: some Sequence<String>) throws {
        let words = arguments.prefix { $0 != "--" }.map { $0.prefix { $0 != "=" } }
        for option in self.allCases where words.count(where: { $0 == "--\(option.rawValue)" }) > 1 {
            throw ValidationError("--\(option.rawValue) is given twice; expected once.")
        }
    }
}

extension NameSpecification {
    package static func option(_ option: OptionName) -> NameSpecification { .customLong(option.rawValue) }
}
