package import Support

/// The envelope of answers. The HTTP status is always 200, and the content type exactly ``contentType``: with any other, the vendor's SDKs take an
/// error for a success.
package enum TencentAnswer {
    package static let contentType = "application/json"

    package static func success(_ members: [JSONValue.Member], requestID: String) -> JSONValue {
        ["Response": .object(members + [.init(name: "RequestId", value: .string(requestID))])]
    }

    package static func failure(_ error: TencentError, requestID: String) -> JSONValue {
        [
            "Response": [
                "Error": ["Code": .string(error.code.rawValue), "Message": .string(error.message)], "RequestId": .string(requestID),
            ]
        ]
    }

    /// A page of a list: its totals, and its entries under `name`.
    package static func page(_ page: TencentAction.Page, total: Int, _ name: String, _ entries: [JSONValue]) -> [JSONValue.Member] {
        let pages = (total + page.size - 1) / page.size
        return [
            .init(name: "TotalNum", value: .integer(Int64(total))), .init(name: "TotalPage", value: .integer(Int64(pages))),
            .init(name: "PageNum", value: .integer(Int64(page.number))), .init(name: "PageSize", value: .integer(Int64(page.size))),
            .init(name: name, value: .array(entries)),
        ]
    }

    /// A time in UTC as `2026-11-21T04:00:00Z`. `ms`: since 1970.
    package static func utc(_ ms: Int64) -> String { Instant.secondsText(ms) }

    /// A time in UTC+8 as `2026-11-21 12:00:00`, the form of older lists. `ms`: since 1970.
    package static func beijing(_ ms: Int64) -> String {
        let (late, overflow) = ms.addingReportingOverflow(8 * 3_600_000)
        return String(Instant.text(overflow ? ms : min(late, Instant.latest)).prefix(19)).replacing("T", with: " ")
    }
}
