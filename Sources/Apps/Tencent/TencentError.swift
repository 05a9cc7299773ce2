/// A refusal in the vendor's form: the code that SDKs turn into their typed exception, and a sentence for people. Holds no secret.
package struct TencentError: Error, Equatable, Sendable {
    /// Such as `AuthFailure.SignatureExpire`. Clients match the part before the dot.
    package enum Code: String, Sendable, CaseIterable {
        case invalidAuthorization = "AuthFailure.InvalidAuthorization"
        case secretIDNotFound = "AuthFailure.SecretIdNotFound"
        case signatureExpired = "AuthFailure.SignatureExpire"
        case signatureWrong = "AuthFailure.SignatureFailure"
        case tokenWrong = "AuthFailure.TokenFailure"
        case unauthorized = "UnauthorizedOperation"
        case invalidAction = "InvalidAction"
        case noSuchVersion = "NoSuchVersion"
        case requestLimit = "RequestLimitExceeded"
        case requestSize = "RequestSizeLimitExceeded"
        case missing = "MissingParameter"
        case invalid = "InvalidParameter"
        case invalidValue = "InvalidParameterValue"
        case unknown = "UnknownParameter"
        case invalidStreamName = "InvalidParameter.InvalidStreamName"
        case noSuchDomain = "ResourceNotFound.PushDomainNoRecord"
        case impossible = "FailedOperation"
        case unsupported = "UnsupportedOperation"
        case unavailable = "ResourceUnavailable"
        case failed = "InternalError"
    }

    package let code: Code
    package let message: String

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }
}
